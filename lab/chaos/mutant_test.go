package chaos

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// mutant is the product with one promise broken in its source.
type mutant struct {
	name  string
	edits []edit
}

// edit is one change of one file. in names the file, or the package that has it, from the module's root.
type edit struct{ in, from, to string }

// source applies the edits and returns the changed files by name. A text that is not there
// exactly once is an error: the product has changed, and this table must follow.
func (m mutant) source(root string) (map[string]string, error) {
	changed := make(map[string]string)
	for _, e := range m.edits {
		files := []string{filepath.Join(root, e.in)}
		if filepath.Ext(e.in) == "" {
			files, _ = filepath.Glob(filepath.Join(root, e.in, "*.go")) // the pattern is a good one
			files = slices.DeleteFunc(files, func(name string) bool { return strings.HasSuffix(name, "_test.go") })
		}
		times := 0
		for _, name := range files {
			text, known := changed[name]
			if !known {
				content, err := os.ReadFile(name)
				if err != nil {
					return nil, fmt.Errorf("mutant %q: %w", m.name, err)
				}
				text = string(content)
			}
			if n := strings.Count(text, e.from); n > 0 {
				times += n
				changed[name] = strings.Replace(text, e.from, e.to, 1)
			}
		}
		if times != 1 {
			return nil, fmt.Errorf("mutant %q: %s has %d times, want once: %q", m.name, e.in, times, e.from)
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
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build mutant %q: %v\n%s", m.name, err, out)
	}
	return binary
}

// TestMutantsMustMatch: a table that silently changes nothing would prove nothing.
func TestMutantsMustMatch(t *testing.T) {
	for _, broken := range brokenBuilds() {
		if _, err := broken.source("../.."); err != nil {
			t.Error(err)
		}
	}
	for _, e := range []edit{
		{"failpoint/failpoint.go", "this text is not there", ""},
		{"failpoint/failpoint.go", "return", ""}, // it is there more than once
		{"failpoint/gone.go", "package", ""},
		{"failpoint", "package failpoint", ""}, // in more than one file
	} {
		if _, err := (mutant{name: "rotten", edits: []edit{e}}).source("../.."); err == nil {
			t.Errorf("%+v was taken", e)
		}
	}
}
