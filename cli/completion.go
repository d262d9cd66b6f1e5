package cli

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/holdfast-rtc/holdfast/internal/invocation"
)

// completionCommand prints what a shell needs. The shell then asks the hidden verb complete for each word.
type completionCommand struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish. For bash: source <(holdfast completion bash)."`
}

const (
	bashCompletion = `_holdfast() {
	local IFS=$'\n'
	COMPREPLY=($(%[1]s complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _holdfast %[2]s
`
	zshCompletion = `#compdef %[2]s
_holdfast() {
	local -a found
	found=("${(@f)$(%[1]s complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
	compadd -a found
}
compdef _holdfast %[2]s
`
	fishCompletion = `complete -c %[2]s -f -a '(%[1]s complete -- (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null)'
`
)

// Run prints the script.
func (c *completionCommand) Run(s streams) error {
	script := map[string]string{"bash": bashCompletion, "zsh": zshCompletion, "fish": fishCompletion}[c.Shell]
	program := invocation.Name()
	if strings.Contains(program, " ") { // go run
		program = "holdfast"
	}
	_, err := fmt.Fprintf(s.out, script, program, filepath.Base(program))
	return err
}

type completeCommand struct {
	Words []string `arg:"" optional:"" help:"The words after the program's name; the last one is incomplete."`
}

// Run prints one possible word a line.
func (c *completeCommand) Run(ctx *kong.Context, s streams) error {
	for _, word := range completions(ctx.Model.Node, c.Words) {
		if _, err := fmt.Fprintln(s.out, word); err != nil {
			return err
		}
	}
	return nil
}

// completions are the verbs and flags that the last word can become. A flag's value has those of its enum.
func completions(at *kong.Node, words []string) []string {
	if len(words) == 0 {
		words = []string{""}
	}
	last := len(words) - 1
	for _, word := range words[:last] {
		if i := slices.IndexFunc(at.Children, func(n *kong.Node) bool { return n.Name == word }); i >= 0 {
			at = at.Children[i]
		}
	}
	var found []string
	switch before := flagOf(at, words[:last]); {
	case before != nil && !before.IsBool():
		found = enumOf(before.Value)
	case strings.HasPrefix(words[last], "-"):
		for _, flag := range flagsOf(at) {
			found = append(found, "--"+flag.Name)
		}
	default:
		for _, child := range at.Children {
			if !child.Hidden {
				found = append(found, child.Name)
			}
		}
		if at.Parent == nil {
			found = append(found, "help")
		}
		for _, argument := range at.Positional {
			found = append(found, enumOf(argument)...)
		}
	}
	found = slices.DeleteFunc(found, func(word string) bool { return !strings.HasPrefix(word, words[last]) })
	slices.Sort(found)
	return found
}

// flagsOf are those that a person can use after a verb, of its usual verb if it is a group.
func flagsOf(verb *kong.Node) []*kong.Flag {
	if verb.DefaultCmd != nil {
		verb = verb.DefaultCmd
	}
	return slices.Concat(verb.AllFlags(true)...)
}

// flagOf is the flag whose value comes next, or nil.
func flagOf(verb *kong.Node, words []string) *kong.Flag {
	if len(words) == 0 {
		return nil
	}
	name, isFlag := strings.CutPrefix(words[len(words)-1], "--")
	for _, flag := range flagsOf(verb) {
		if isFlag && flag.Name == name {
			return flag
		}
	}
	return nil
}

func enumOf(value *kong.Value) []string {
	if value.Enum == "" {
		return nil
	}
	return value.EnumSlice()
}
