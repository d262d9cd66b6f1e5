package web_test

import (
	"bytes"
	"io/fs"
	"strings"
	"testing"

	"github.com/holdfast-rtc/holdfast/internal/build"
	"github.com/holdfast-rtc/holdfast/web"
)

// TestTheLibraryStandsAtItsVersion: every file of the library is served a second time under the version, and nothing else is.
func TestTheLibraryStandsAtItsVersion(t *testing.T) {
	site := web.Static()
	version := build.Version[:strings.LastIndex(build.Version, ".")]
	files := map[string][]byte{}
	err := fs.WalkDir(site, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		files[name], err = fs.ReadFile(site, name)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	twice := 0
	for name, content := range files {
		rest, ok := strings.CutPrefix(name, "holdfast/")
		if !ok || strings.HasPrefix(rest, version+"/") {
			continue
		}
		twice++
		if again, ok := files["holdfast/"+version+"/"+rest]; !ok || !bytes.Equal(again, content) {
			t.Errorf("%s is not served under %s, or is another file", name, version)
		}
	}
	if twice < 60 {
		t.Errorf("the library has only %d files", twice)
	}
	for _, name := range []string{"holdfast/" + version + "/" + version + "/index.js", "holdfast/" + version + "0/index.js", "holdfast/9.9/index.js", version + "/index.js"} {
		if _, err := fs.Stat(site, name); err == nil {
			t.Errorf("%s is served", name)
		}
	}
}
