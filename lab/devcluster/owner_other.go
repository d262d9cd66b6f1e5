//go:build !unix

package devcluster

import "io/fs"

// ours cannot be asked here; temporary directories are the user's own.
func ours(fs.FileInfo) bool { return true }
