//go:build node

package cli

// labCommands is empty in the binary of nodes.
type labCommands struct{}

// spokenFor knows no command that runs elsewhere.
func spokenFor(error) (code int, ok bool) { return 0, false }
