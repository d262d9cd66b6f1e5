// Package build tells which build of Holdfast a process runs: its version, and the commit that the Go tool stamped into the binary. It
// promises the same answer for the whole life of the process. It does not know whether another node runs the same build.
package build

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
)

// Version is that of the release, or of the one that is being prepared. See CHANGELOG.md.
const Version = "0.1.0"

// shownCommit is how many characters of a commit people read.
const shownCommit = 8

// Info describes a build. Commit is empty where the binary was built outside a checkout, as by go test.
type Info struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`
	Modified bool   `json:"modified,omitempty"` // the checkout had changes that no commit has
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// Current is the build of this process.
//
//nolint:gochecknoglobals // read once
var Current = sync.OnceValue(func() Info {
	info := Info{Version: Version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	stamped, ok := debug.ReadBuildInfo()
	if !ok {
		return info
	}
	for _, s := range stamped.Settings {
		switch s.Key {
		case "vcs.revision":
			info.Commit = s.Value
		case "vcs.modified":
			info.Modified = s.Value == "true"
		}
	}
	return info
})

// Short is the version and the beginning of the commit, such as "0.1.0+65fd839c", with "-modified" where that is so.
func (i Info) Short() string {
	short := i.Version
	if i.Commit != "" {
		short += "+" + i.Commit[:min(len(i.Commit), shownCommit)]
	}
	if i.Modified {
		short += "-modified"
	}
	return short
}

// String is a line for people.
func (i Info) String() string {
	commit := "built outside a checkout"
	if i.Commit != "" {
		commit = "commit " + i.Commit
	}
	if i.Modified {
		commit += " with changes"
	}
	return fmt.Sprintf("holdfast %s, %s, %s %s", i.Version, commit, i.Go, i.Platform)
}
