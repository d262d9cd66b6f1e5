package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestSecurityNamesTestsThatExist: each bound in docs/SECURITY.md names the test that shows it, and a test that was renamed or removed
// shows nothing.
func TestSecurityNamesTestsThatExist(t *testing.T) {
	document, err := os.ReadFile("docs/SECURITY.md")
	if err != nil {
		t.Fatal(err)
	}
	missing := map[string]bool{}
	for _, name := range regexp.MustCompile(`\b(Test|Fuzz)[A-Z]\w+`).FindAllString(string(document), -1) {
		missing[name] = true
	}
	if len(missing) < 10 {
		t.Errorf("only %d tests are named", len(missing))
	}
	err = filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for name := range missing {
			if strings.Contains(string(source), "\nfunc "+name+"(") {
				delete(missing, name)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range missing {
		t.Errorf("docs/SECURITY.md names %s, which does not exist", name)
	}
}
