//go:build !node

package cli

import (
	"os"
	"path/filepath"
	"testing"
)

func TestCopyLogs(t *testing.T) {
	from, to := t.TempDir(), filepath.Join(t.TempDir(), "new", "logs")
	for name, text := range map[string]string{"sfu-1.log": "one\n", "front.log": "", "state.json": "secret"} {
		if err := os.WriteFile(filepath.Join(from, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // Again, over what is there.
		if err := copyLogs(to, from); err != nil {
			t.Fatal(err)
		}
		entries, err := os.ReadDir(to)
		if err != nil || len(entries) != 2 {
			t.Fatalf("%v, %v, want the two logs and nothing else", entries, err)
		}
		if text, err := os.ReadFile(filepath.Join(to, "sfu-1.log")); err != nil || string(text) != "one\n" {
			t.Fatalf("%q, %v", text, err)
		}
	}
	if err := copyLogs(t.TempDir(), t.TempDir()); err == nil {
		t.Error("a directory without logs was copied")
	}
}
