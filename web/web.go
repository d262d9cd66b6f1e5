// Package web holds what the signaling nodes hand to browsers: the plain page
// and the embeddable client library (static/holdfast), as files inside the binary.
//
// It promises that the files are served exactly as they lie in the repository:
// there is no build step, so what a reader sees here is what a browser runs. It
// knows nothing of rooms, nodes or HTTP; its user mounts the file system.
package web

import (
	"embed"
	"fmt"
	"io/fs"
	"strings"

	"github.com/holdfast-rtc/holdfast/internal/build"
)

//go:embed static
var static embed.FS

const library = "holdfast"

// Static is the root of the site: index.html, page/, operator/, check/ and holdfast/, the library. The library also stands at
// holdfast/0.1/, of whatever major and minor version this build is, for pages that name the interface they were written for.
func Static() fs.FS {
	sub, err := fs.Sub(static, "static")
	if err != nil {
		// Only an invalid path could fail, and this one is a constant.
		return static
	}
	parts := strings.SplitN(build.Version, ".", 3)
	return versioned{FS: sub, version: strings.Join(parts[:min(2, len(parts))], ".")}
}

// versioned has the library's folder a second time, inside itself, under the name of its version.
type versioned struct {
	fs.FS

	version string
}

func (v versioned) Open(name string) (fs.File, error) {
	file, err := v.FS.Open(v.original(name))
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", name, err)
	}
	return file, nil
}

// ReadDir lists the second folder too, so that whoever walks the site finds its files.
func (v versioned) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := fs.ReadDir(v.FS, v.original(name))
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", name, err)
	}
	if name != library {
		return entries, nil
	}
	info, err := fs.Stat(v.FS, library)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", name, err)
	}
	return append([]fs.DirEntry{fs.FileInfoToDirEntry(renamed{info, v.version})}, entries...), nil
}

// original is the path of the embedded file that is served as name.
func (v versioned) original(name string) string {
	rest, ok := strings.CutPrefix(name, library+"/"+v.version)
	if ok && (rest == "" || rest[0] == '/') {
		return library + rest
	}
	return name
}

type renamed struct {
	fs.FileInfo

	name string
}

func (r renamed) Name() string { return r.name }
