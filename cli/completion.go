package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/alecthomas/kong"

	"github.com/holdfast-rtc/holdfast/internal/invocation"
	"github.com/holdfast-rtc/holdfast/internal/nodelist"
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
	serverFlags
	Words []string `arg:"" optional:"" help:"The words after the program's name; the last one is incomplete."`
}

// completeLimit is how long a shell waits for the names of nodes and rooms.
const completeLimit = time.Second

// Run prints one possible word a line.
func (c *completeCommand) Run(ctx context.Context, model *kong.Kong, s streams) error {
	ctx, cancel := context.WithTimeout(ctx, completeLimit)
	defer cancel()
	for _, word := range completions(model.Model.Node, c.Words, func(what string) []string { return c.live(ctx, what) }) {
		if _, err := fmt.Fprintln(s.out, word); err != nil {
			return err
		}
	}
	return nil
}

// live are the names of media nodes, rooms or a development cluster's processes, as an argument's name says. Without an answer there are none.
func (c *completeCommand) live(ctx context.Context, argument string) []string {
	var found []string
	var answer struct {
		Nodes []nodelist.Node  `json:"nodes"`
		Rooms []map[string]any `json:"rooms"`
	}
	switch argument {
	case "name":
		dev, err := findDev(ctx, c.State)
		if err != nil {
			return nil
		}
		return dev.processes(ctx)
	case "node":
		body, err := c.send(ctx, http.MethodGet, "nodes")
		if err != nil || json.Unmarshal(body, &answer) != nil {
			return nil
		}
		for _, n := range answer.Nodes {
			if !n.Signaling() && !n.Gone() {
				found = append(found, n.Name)
			}
		}
	case "room":
		body, err := c.send(ctx, http.MethodGet, "room-list?limit=200")
		if err != nil || json.Unmarshal(body, &answer) != nil {
			return nil
		}
		for _, room := range answer.Rooms {
			if name, ok := room["room"].(string); ok && typable(name) {
				found = append(found, name)
			}
		}
	}
	return found
}

// typable reports whether a shell takes a name as it stands: strangers name rooms.
func typable(name string) bool {
	return name != "" && !strings.HasPrefix(name, "-") && !strings.ContainsFunc(name, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-_.", r)
	})
}

// completions are the verbs and flags that the last word can become. A flag's value has those of its enum, and an argument the names that live
// returns for it.
func completions(at *kong.Node, words []string, live func(argument string) []string) []string {
	if len(words) == 0 {
		words = []string{""}
	}
	last := len(words) - 1
	arguments := 0
	for _, word := range words[:last] {
		if i := slices.IndexFunc(at.Children, func(n *kong.Node) bool { return n.Name == word }); i >= 0 {
			at = at.Children[i]
		} else if !strings.HasPrefix(word, "-") {
			arguments++
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
		if arguments < len(at.Positional) {
			argument := at.Positional[arguments]
			found = append(append(found, enumOf(argument)...), live(argument.Name)...)
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
