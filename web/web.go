// Package web holds what the signaling nodes hand to browsers: the plain page
// and the embeddable client library (static/holdfast), as files inside the binary.
//
// It promises that the files are served exactly as they lie in the repository:
// there is no build step, so what a reader sees here is what a browser runs. It
// knows nothing of rooms, nodes or HTTP; its user mounts the file system.
package web

import (
	"embed"
	"io/fs"
)

//go:embed static
var static embed.FS

// Static is the root of the site: index.html, page/ and holdfast/ (the library).
func Static() fs.FS {
	sub, err := fs.Sub(static, "static")
	if err != nil {
		// Only an invalid path could fail, and this one is a constant.
		return static
	}
	return sub
}
