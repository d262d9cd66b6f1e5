package devcluster

import (
	"fmt"
	"os"
	"path/filepath"
)

// runDir is locked while its process lives. Later processes remove a killed one's.
type runDir struct {
	path string
	lock *os.File
}

func makeRunDir(prefix string) (*runDir, error) {
	sweep(prefix)
	// Other processes remove unlocked directories with the final name.
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

func sweep(prefix string) {
	left, _ := filepath.Glob(filepath.Join(os.TempDir(), prefix+"*")) // the pattern is valid
	for _, path := range left {
		lock, err := lockDir(path)
		if err != nil {
			continue // in use, or another user's
		}
		(&runDir{path: path, lock: lock}).remove()
	}
}
