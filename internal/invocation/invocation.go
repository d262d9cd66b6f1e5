// Package invocation tells how a person started this program, so that what the program says can be typed as it stands: `go run . dev status`
// and not `holdfast dev status`, if there is no holdfast on the path.
//
// It only looks at the process and at its parent. It knows no verbs. Begin with Name.
package invocation

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/holdfast-rtc/holdfast/internal/child"
)

// usual is the program's name where it was not started by a person.
const usual = "holdfast"

// Name is what a person types before the verb.
func Name() string {
	if child.Supervised() {
		return usual
	}
	if ByGoRun() {
		return goRun(parent("cmdline"))
	}
	return typed(os.Args[0])
}

// ByGoRun reports whether `go run` started this process: the binary lies in the compiler's cache, or on Linux the parent is go.
func ByGoRun() bool {
	self, err := os.Executable()
	if err == nil && strings.Contains(self, "go-build") && !strings.HasSuffix(self, ".test") {
		return true
	}
	return strings.TrimSpace(parent("comm")) == "go" && !strings.HasSuffix(os.Args[0], ".test")
}

// parent is a file of /proc about the parent; "" where there is none.
func parent(file string) string {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", os.Getppid(), file))
	if err != nil {
		return ""
	}
	return string(content)
}

// goRun is the command line of `go run` up to the package. Its arguments end with a zero byte each.
func goRun(commandLine string) string {
	args := strings.Split(strings.TrimSuffix(commandLine, "\x00"), "\x00")
	run := slices.Index(args, "run")
	if run < 1 {
		return "go run ."
	}
	shown := []string{"go", "run"}
	if run > 1 { // -C DIR
		shown = slices.Concat([]string{"go"}, args[1:run+1])
	}
	for i := run + 1; i < len(args); i++ {
		shown = append(shown, args[i])
		switch {
		case takesValue(args[i]) && i+1 < len(args):
			i++
			shown = append(shown, args[i])
		case !strings.HasPrefix(args[i], "-"):
			for i++; strings.HasSuffix(args[i-1], ".go") && i < len(args) && strings.HasSuffix(args[i], ".go"); i++ {
				shown = append(shown, args[i])
			}
			if line := strings.Join(shown, " "); !strings.ContainsFunc(line, strange) {
				return line
			}
			return "go run ."
		}
	}
	return "go run ."
}

// takesValue reports whether the value of a flag of `go run` may be the next argument.
func takesValue(flag string) bool {
	switch strings.TrimLeft(flag, "-") {
	case "asmflags", "C", "exec", "gccgoflags", "gcflags", "installsuffix", "ldflags", "mod", "modfile", "o", "overlay", "p", "pgo", "pkgdir", "tags", "toolexec":
		return strings.HasPrefix(flag, "-")
	}
	return false
}

// strange is what a shell would not take as it stands.
func strange(r rune) bool {
	return !strings.ContainsRune(" ./-_=,:@+%", r) && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
}

// typed is the first argument as the shell was given it.
func typed(arg string) string {
	if arg == "" || strings.HasSuffix(filepath.Base(arg), ".test") || strings.ContainsFunc(arg, strange) || strings.Contains(arg, " ") {
		return usual
	}
	return arg
}
