// Package tool finds the programs that tests need. tools.txt lists them all, with the packages that have them, and test.sh
// installs from the same list: a test cannot come to depend on a program that a fresh machine lacks.
package tool

import (
	_ "embed"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

//go:embed tools.txt
var list string

// Find returns the path of a listed command, or of another one that serves as well. Without one the test is skipped, and
// with CI=true it fails. A command that is not on the list fails the test everywhere.
func Find(tb testing.TB, command string) string {
	tb.Helper()
	commands, packages, use := listed(command)
	if commands == nil {
		tb.Fatalf("%s is not in internal/tool/tools.txt: add it there, so that test.sh installs it", command)
	}
	for _, name := range commands {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	const text = "%s is not installed (Debian: %s): NOT TESTED is %s; ./test.sh, run as root, installs it"
	if os.Getenv("CI") == "true" {
		tb.Fatalf(text, command, packages, use)
	}
	tb.Skipf(text, command, packages, use)
	return ""
}

// listed returns the line of the list that begins with command, or nothing.
func listed(command string) (commands []string, packages, use string) {
	for line := range strings.Lines(list) {
		columns := strings.Split(strings.TrimSpace(line), "|")
		if strings.HasPrefix(line, "#") || len(columns) != 3 {
			continue
		}
		if commands := strings.Fields(columns[0]); slices.Contains(commands, command) {
			return commands, strings.TrimSpace(columns[1]), strings.TrimSpace(columns[2])
		}
	}
	return nil, "", ""
}
