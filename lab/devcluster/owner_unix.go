//go:build unix

package devcluster

import (
	"io/fs"
	"os"
	"syscall"
)

// ours reports whether the file belongs to this user: in a shared temporary
// directory somebody else could have made it first.
func ours(found fs.FileInfo) bool {
	stat, ok := found.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Getuid()
}
