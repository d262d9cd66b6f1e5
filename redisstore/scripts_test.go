package redisstore

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestScriptsAreSentWithoutComments: comments are for readers, and every call sends its script.
func TestScriptsAreSentWithoutComments(t *testing.T) {
	got := compose("-- Shared.\nlocal n = 1\n", "\nif n then\n  -- Why.\n  return n -- a unit\nend\n")
	if want := "local n = 1\nif n then\nreturn n -- a unit\nend\n"; got != want {
		t.Errorf("compose = %q, want %q", got, want)
	}
}

// TestEveryLuaFileIsEmbedded: a file that nobody sends would be read for nothing.
func TestEveryLuaFileIsEmbedded(t *testing.T) {
	source, err := os.ReadFile("scripts.go")
	if err != nil {
		t.Fatal(err)
	}
	files, _ := filepath.Glob("lua/*.lua") // the pattern is a good one
	if len(files) == 0 {
		t.Fatal("no Lua files are found")
	}
	for _, name := range files {
		if !strings.Contains(string(source), "//go:embed "+name+"\n") {
			t.Errorf("%s is not embedded by scripts.go", name)
		}
	}
}
