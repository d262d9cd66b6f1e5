package devcluster

import (
	"fmt"
	"os"
	"path/filepath"
)

// runDir is a temporary directory, locked while its process lives. The next process removes what a killed one left
// behind.
type runDir struct {
	path string
	lock *os.File
}

func makeRunDir(prefix string) (*runDir, error) {
	sweep(prefix)
	// It gets its name once it is locked, or another process could sweep it away.
	fresh, err := os.MkdirTemp("", "new-"+prefix)
	if err != nil {
		return nil, fmt.Errorf("make a directory of this run: %w", err)
	}
	lock, err := lockDir(fresh)
	if err != nil {
		os.RemoveAll(fresh)
		return nil, fmt.Errorf("lock the directory of this run: %w", err)
	}
	d := &runDir{path: filepath.Join(filepath.Dir(fresh), filepath.Base(fresh)[len("new-"):]), lock: lock}
	if err := os.Rename(fresh, d.path); err != nil {
		d.path = fresh
		d.remove()
		return nil, fmt.Errorf("name the directory of this run: %w", err)
	}
	return d, nil
}

func (d *runDir) remove() {
	os.RemoveAll(d.path)
	d.lock.Close()
}

// sweep removes the directories whose process is gone.
func sweep(prefix string) {
	left, _ := filepath.Glob(filepath.Join(os.TempDir(), prefix+"*")) // The pattern is ours.
	for _, path := range left {
		lock, err := lockDir(path)
		if err != nil {
			continue // It is in use, or somebody else's.
		}
		(&runDir{path: path, lock: lock}).remove()
	}
}
