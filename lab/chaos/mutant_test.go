package chaos

import (
	"encoding/json"
	"fmt"
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

// edit is one change of one file, named from the module's root.
type edit struct{ file, from, to string }

// source applies the edits and returns the changed files by name. A text that is not there
// exactly once is an error: the product has changed, and this table must follow.
func (m mutant) source(root string) (map[string]string, error) {
	files := make(map[string]string)
	for _, e := range m.edits {
		text, known := files[e.file]
		if !known {
			content, err := os.ReadFile(filepath.Join(root, e.file))
			if err != nil {
				return nil, fmt.Errorf("mutant %q: %w", m.name, err)
			}
			text = string(content)
		}
		if n := strings.Count(text, e.from); n != 1 {
			return nil, fmt.Errorf("mutant %q: %s has %d times, want once: %q", m.name, e.file, n, e.from)
		}
		files[e.file] = strings.Replace(text, e.from, e.to, 1)
	}
	return files, nil
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
		overlay.Replace[filepath.Join(root, name)] = changed
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
	for _, e := range []edit{
		{"failpoint/failpoint.go", "this text is not there", ""},
		{"failpoint/failpoint.go", "return", ""}, // it is there more than once
		{"failpoint/gone.go", "package", ""},
	} {
		if _, err := (mutant{name: "rotten", edits: []edit{e}}).source("../.."); err == nil {
			t.Errorf("%+v was taken", e)
		}
	}
}
