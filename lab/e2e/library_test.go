//go:build linux

package e2e

import (
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/web"
)

const libraryLimit = 4 * time.Minute

// TestLibraryInFirefox runs the library's own tests, which the web package runs in Chromium: whole calls against nodes
// that are connections of the same page.
func TestLibraryInFirefox(t *testing.T) {
	t.Parallel()
	needFirefox(t, 2)
	mux := http.NewServeMux()
	mux.Handle("/", http.FileServerFS(web.Static()))
	mux.Handle("/tests/", http.StripPrefix("/tests/", http.FileServerFS(os.DirFS("../../web/testdata/tests"))))
	mux.Handle("/golden/", http.StripPrefix("/golden/", http.FileServerFS(os.DirFS("../../signaling/wire/testdata"))))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	p := openFirefox(t, "the library", "about:blank")
	for _, file := range []string{"policy.test.js", "slots.test.js", "call.test.js", "permissions.test.js", "live.test.js", "frozen.test.js", "journey.test.js", "sealed-frame.test.js", "refused.test.js"} {
		t.Run(file, func(t *testing.T) {
			p.visit(t, server.URL+"/tests/run.html?file="+file, "globalThis.results")
			var results []struct{ Name, Error string }
			if err := p.evalWithin(libraryLimit, "window.results", &results); err != nil {
				t.Fatal(err)
			}
			if len(results) == 0 {
				t.Fatal("no case ran")
			}
			for _, result := range results {
				t.Run(result.Name, func(t *testing.T) {
					if result.Error != "" {
						t.Error(result.Error)
					}
				})
			}
		})
	}
}
