package rest

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"
)

func TestThePageIsServedInGzipAndOnce(t *testing.T) {
	script := strings.Repeat("say('hello');\n", 100)
	handler := servesStatic(fstest.MapFS{"index.html": {Data: []byte("<!doctype html>" + script)}, "page/main.js": {Data: []byte(script)}, "tiny": {Data: []byte("x")}})
	get := func(path string, header http.Header) *http.Response {
		t.Helper()
		r := httptest.NewRequest(http.MethodGet, path, nil)
		r.Header = header
		w := httptest.NewRecorder()
		handler(w, r)
		return w.Result()
	}
	packed := http.Header{"Accept-Encoding": {"gzip, br"}}
	for path, want := range map[string]string{"/": "<!doctype html>" + script, "/page/main.js": script} {
		response := get(path, packed)
		unzip, err := gzip.NewReader(response.Body)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if got, err := io.ReadAll(unzip); err != nil || string(got) != want {
			t.Errorf("%s is %q, %v", path, got, err)
		}
		if kind := response.Header.Get("Content-Type"); !strings.HasPrefix(kind, "text/") {
			t.Errorf("%s is of type %s", path, kind)
		}
		again := packed.Clone()
		again.Set("If-None-Match", response.Header.Get("ETag"))
		if status := get(path, again).StatusCode; status != http.StatusNotModified {
			t.Errorf("%s again: %d", path, status)
		}
		plain := get(path, http.Header{})
		if got, _ := io.ReadAll(plain.Body); string(got) != want || plain.Header.Get("Content-Encoding") != "" || plain.Header.Get("ETag") == response.Header.Get("ETag") {
			t.Errorf("%s without gzip is %q, %v", path, got, plain.Header)
		}
	}
	if got, _ := io.ReadAll(get("/tiny", packed).Body); string(got) != "x" {
		t.Errorf("what gzip makes no smaller is %q", got)
	}
	if status := get("/none", packed).StatusCode; status != http.StatusNotFound {
		t.Errorf("no file: %d", status)
	}
}
