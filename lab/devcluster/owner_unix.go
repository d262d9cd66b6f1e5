//go:build unix

package devcluster

import (
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// lockDir locks a directory until it is closed or this process ends, without waiting.
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

// ours reports whether the file is this user's: somebody else could have made it in a shared temporary directory.
func ours(found fs.FileInfo) bool {
	stat, ok := found.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Getuid()
}
