package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// verbGroup is what a verb is for. Its key stands in the verbs' group tags.
type verbGroup struct{ key, title string }

// verbGroups are in the order in which people need them.
func verbGroups() []verbGroup {
	return []verbGroup{
		{"try", "Try it on this machine"},
		{"look", "Look at a cluster"},
		{"change", "Change what runs"},
		{"keys", "Keys and tokens"},
		{"node", "Run a node"},
		{"other", "Other"},
	}
}

// helpIsAsked turns `help VERB`, and no words at all, into the flag.
func helpIsAsked(args []string) []string {
	switch {
	case len(args) == 0:
		return []string{"--help"}
	case slices.Equal(args, []string{"help", "help"}):
		return []string{"--help"}
	case args[0] == "help":
		return append(slices.Clone(args[1:]), "--help")
	default:
		return args
	}
}

// printHelp prints one page for the whole program, and kong's for a verb.
func printHelp(o kong.HelpOptions, ctx *kong.Context) error {
	verb := ctx.Selected()
	if verb == nil {
		return printOverview(ctx.Stdout, ctx.Model)
	}
	if len(verb.Children) == 0 {
		return kong.DefaultHelpPrinter(o, ctx)
	}
	fmt.Fprintf(ctx.Stdout, "Usage: %s %s VERB\n\n%s\n\n", ctx.Model.Name, verb.Path(), verb.Help)
	if err := printVerbs(ctx.Stdout, verb.Children); err != nil {
		return err
	}
	fmt.Fprintf(ctx.Stdout, "\n'%s help %s VERB' says more of a verb.\n", ctx.Model.Name, verb.Path())
	return nil
}

func printOverview(w io.Writer, model *kong.Application) error {
	fmt.Fprintf(w, "%s\n\nUsage: %s VERB [ARGUMENTS] [--FLAGS]\n", model.Help, model.Name)
	for _, group := range verbGroups() {
		verbs := slices.DeleteFunc(slices.Clone(model.Children), func(n *kong.Node) bool { return n.Hidden || n.Group == nil || n.Group.Key != group.key })
		if len(verbs) == 0 {
			continue
		}
		fmt.Fprintf(w, "\n%s:\n", group.title)
		if err := printVerbs(w, verbs); err != nil {
			return err
		}
	}
	fmt.Fprintf(w, "\n'%[1]s help VERB' says more of a verb. Each flag can be a variable, too: --cluster-key is HOLDFAST_CLUSTER_KEY.\n", model.Name)
	return nil
}

// verbColumn is as wide as the longest verb.
const verbColumn = 11

func printVerbs(w io.Writer, verbs []*kong.Node) error {
	for _, verb := range verbs {
		if verb.Hidden {
			continue
		}
		if _, err := fmt.Fprintf(w, "  %-*s  %s\n", verbColumn, verb.Name, verb.Help); err != nil {
			return err
		}
	}
	return nil
}

// wrongUsage says what was wrong with the command line, and how the verb is used.
func wrongUsage(w io.Writer, model *kong.Application, args []string, err error) {
	text := err.Error()
	if argument, missing := strings.CutPrefix(text, `expected "<`); missing {
		text = "an argument is missing: <" + strings.TrimSuffix(argument, `"`)
	}
	guess := ""
	if !strings.Contains(text, "did you mean") {
		guess = misspelt(model.Node, args)
	}
	fmt.Fprintf(w, "%s: %s%s\n", model.Name, text, guess)
	help := "help"
	if parsed, ok := errors.AsType[*kong.ParseError](err); ok && parsed.Context != nil && parsed.Context.Selected() != nil {
		verb := parsed.Context.Selected()
		if parent := verb.Parent; guess != "" && parent != nil && parent.DefaultCmd == verb {
			verb = parent
		}
		fmt.Fprintf(w, "Usage: %s %s\n", model.Name, verb.Summary())
		help += " " + verb.Path()
	}
	fmt.Fprintf(w, "'%s %s' says more.\n", model.Name, help)
}

// misspelt guesses which verb of a group of verbs was meant: kong takes a wrong word there for an argument of the group's usual verb.
func misspelt(group *kong.Node, args []string) string {
	for _, word := range args {
		next := slices.IndexFunc(group.Children, func(n *kong.Node) bool { return n.Name == word })
		if next >= 0 {
			group = group.Children[next]
			continue
		}
		if strings.HasPrefix(word, "-") || len(group.Children) == 0 {
			return ""
		}
		nearest := slices.MinFunc(group.Children, func(a, b *kong.Node) int {
			return cmp.Compare(distance(a.Name, word), distance(b.Name, word))
		})
		if distance(nearest.Name, word) <= 2 {
			return fmt.Sprintf(", did you mean %q?", nearest.Name)
		}
		return ""
	}
	return ""
}

// distance is Levenshtein's: how many letters are put in, left out or replaced.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
