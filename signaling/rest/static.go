package rest

import (
	"bytes"
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

// asset is a page's file: its hash, and its gzip where that saves something.
type asset struct {
	hash   string
	packed []byte
}

// servesStatic gzips for who takes it, and answers 304 for the newest.
func servesStatic(files fs.FS) http.HandlerFunc {
	plain := http.FileServerFS(files)
	assets := sync.OnceValue(func() map[string]asset { return pack(files) })
	return func(w http.ResponseWriter, r *http.Request) {
		name := strings.TrimPrefix(r.URL.Path, "/")
		switch name {
		case "":
			name = "index.html"
		case "index.html":
			name = "" // FileServerFS redirects it
		}
		found, ok := assets()[name]
		if !ok {
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
		_, _ = zip.Write(content) // a buffer takes everything
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
