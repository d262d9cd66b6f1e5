//go:build unix

package devcluster

import (
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// lockDir locks a directory until it is closed or this process ends; it does not wait.
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

// ours reports whether the file belongs to this user: in a shared temporary
// directory somebody else could have made it first.
func ours(found fs.FileInfo) bool {
	stat, ok := found.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Getuid()
}
