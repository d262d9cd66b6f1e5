package chaos

import (
	"encoding/json"
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// mutant is the product with one promise broken in its source.
type mutant struct {
	name  string
	edits []edit
}

// source applies the edits and returns the changed files by name. An edit that does not apply exactly once is an error:
// the product has changed, and the table must follow.
func (m mutant) source(root string) (map[string]string, error) {
	changed := make(map[string]string)
	for _, e := range m.edits {
		which := "*.go"
		if e.isFile() {
			which = e.decl
		}
		files, _ := filepath.Glob(filepath.Join(root, e.in, which)) // the pattern is a good one
		times := 0
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			text, known := changed[name]
			if !known {
				content, err := os.ReadFile(name)
				if err != nil {
					return nil, fmt.Errorf("mutant %q: %w", m.name, err)
				}
				text = string(content)
			}
			results, err := e.apply(text)
			if err != nil {
				return nil, fmt.Errorf("mutant %q: %s: %w", m.name, name, err)
			}
			if times += len(results); len(results) == 1 {
				changed[name] = results[0]
			}
		}
		if times != 1 {
			return nil, fmt.Errorf("mutant %q: %s in %s has %d times, want once: %q", m.name, e.decl, e.in, times, e.from)
		}
	}
	return changed, nil
}

// build compiles the mutant with an overlay: the working tree stays as it is.
func (m mutant) build(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	files, err := m.source(root)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	overlay := struct{ Replace map[string]string }{make(map[string]string)}
	for name, text := range files {
		changed := filepath.Join(dir, fmt.Sprintf("%d-%s", len(overlay.Replace), filepath.Base(name)))
		if err := os.WriteFile(changed, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		overlay.Replace[name] = changed
	}
	list, err := json.Marshal(overlay)
	if err != nil {
		t.Fatal(err)
	}
	overlaid, binary := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "holdfast")
	if err := os.WriteFile(overlaid, list, 0o600); err != nil {
		t.Fatal(err)
	}
	// Without debug information the linker is done in half of the time.
	build := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-ldflags=-s -w", "-overlay", overlaid, "-o", binary, ".")
	build.Dir, build.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build mutant %q: %v\n%s", m.name, err, out)
	}
	return binary
}

// TestMutantsMustMatch: a table that silently changes nothing would prove nothing.
func TestMutantsMustMatch(t *testing.T) {
	for _, broken := range brokenBuilds() {
		files, err := broken.source("../..")
		if err != nil {
			t.Error(err)
		}
		for name, text := range files {
			if !strings.HasSuffix(name, ".go") {
				continue
			}
			if _, err := parser.ParseFile(token.NewFileSet(), name, text, 0); err != nil {
				t.Errorf("mutant %q: %v", broken.name, err)
			}
		}
	}
	for _, e := range []edit{
		{"internal/failpoint", "Hit", "_list[nowhere]", ""},
		{"internal/failpoint", "parse", "_x = _y", ""}, // it is there more than once
		{"internal/failpoint", "nowhere", "", ""},
		{"gone", "Hit", "", ""},
		{"redisstore/lua", "write_roster.lua", "nowhere", ""},
		{"redisstore/lua", "gone.lua", "local", ""},
	} {
		if _, err := (mutant{name: "rotten", edits: []edit{e}}).source("../.."); err == nil {
			t.Errorf("%+v was taken", e)
		}
	}
}

func TestAnEditFollowsNames(t *testing.T) {
	const before = `package p

const script = ` + "`if a then b`" + `

func (n *Node) take(room string, limit int) error {
	held, err := n.ask(room,
		limit)
	return use(Options{Every: 5 * second}, held && limit > 3, err)
}
`
	for e, want := range map[edit]string{ // a part of the result; empty when the edit must not apply exactly once
		{decl: "Node.take", from: "_x && _n > 3", to: "_x"}:               "second}, held, err)",
		{decl: "Node.take", from: "_recv.ask(_arg1, _arg2)", to: "_arg2"}: "err := limit\n",
		{decl: "Node.take", from: "Every: 5 * _d", to: "Every: _d"}:       "Options{Every: second}",
		{decl: "Node.take", to: "_arg2++;"}:                               "{limit++;",
		{decl: "script", from: "a then", to: "true then"}:                 "`if true then b`",
		{decl: "script", to: "1"}:                                         "script = 1",
		{decl: "take", from: "_x && _n > 3"}:                              "",
		{decl: "Node.take", from: "_x"}:                                   "",
	} {
		results, err := e.apply(before)
		if err != nil {
			t.Fatal(err)
		}
		if (want == "") != (len(results) != 1) || want != "" && !strings.Contains(results[0], want) {
			t.Errorf("%+v: %q", e, results)
		}
	}
}
