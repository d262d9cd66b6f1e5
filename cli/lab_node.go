//go:build node

package cli

// labCommands is empty in the binary of nodes.
type labCommands struct{}

func spokenFor(error) (code int, ok bool) { return 0, false }
