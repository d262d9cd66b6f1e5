//go:build unix

package failpoint

import "syscall"

// stopSelf lasts until SIGCONT.
func stopSelf() { _ = syscall.Kill(syscall.Getpid(), syscall.SIGSTOP) }
