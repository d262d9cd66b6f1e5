package rest

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"
)

// asset is a file of the page, with its hash, and with its gzip form where that is smaller.
type asset struct {
	hash   string
	packed []byte
}

// servesStatic sends gzip to clients that take it, and answers 304 to clients that have the newest file.
func servesStatic(files fs.FS) http.HandlerFunc {
	plain := http.FileServerFS(files)
	assets := sync.OnceValue(func() map[string]asset { return pack(files) })
	return func(w http.ResponseWriter, r *http.Request) {
		name := strings.TrimPrefix(r.URL.Path, "/")
		switch name {
		case "":
			name = "index.html"
		case "index.html":
			// FileServerFS would redirect the name of an index file.
			name = ""
		}
		found, ok := assets()[name]
		if !ok {
			if _, err := fs.Stat(files, cmp.Or(strings.TrimSuffix(strings.TrimPrefix(r.URL.Path, "/"), "/"), ".")); err != nil {
				serveNothing(w, r)
				return
			}
			plain.ServeHTTP(w, r)
			return
		}
		w.Header().Add("Vary", "Accept-Encoding")
		if found.packed == nil || !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			w.Header().Set("ETag", `"`+found.hash+`"`)
			plain.ServeHTTP(w, r)
			return
		}
		w.Header().Set("ETag", `"`+found.hash+`-gz"`)
		w.Header().Set("Content-Encoding", "gzip")
		http.ServeContent(w, r, path.Base(name), time.Time{}, bytes.NewReader(found.packed))
	}
}

func pack(files fs.FS) map[string]asset {
	assets := map[string]asset{}
	_ = fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return nil //nolint:nilerr // What cannot be read is left to the file server.
		}
		content, err := fs.ReadFile(files, name)
		if err != nil {
			return nil //nolint:nilerr // As above.
		}
		hash := sha256.Sum256(content)
		var packed bytes.Buffer
		zip, _ := gzip.NewWriterLevel(&packed, gzip.BestCompression)
		// A buffer takes every write.
		_, _ = zip.Write(content)
		_ = zip.Close()
		found := asset{hash: hex.EncodeToString(hash[:8])}
		if packed.Len() < len(content) {
			found.packed = packed.Bytes()
		}
		assets[name] = found
		return nil
	})
	return assets
}
