//go:build unix

package devcluster

import (
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// lockDir does not wait. The lock ends with the file or this process.
func lockDir(path string) (*os.File, error) {
	dir, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(dir.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		dir.Close()
		return nil, err
	}
	return dir, nil
}

// In a shared temporary directory the file could be another user's.
func ours(found fs.FileInfo) bool {
	stat, ok := found.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Getuid()
}
