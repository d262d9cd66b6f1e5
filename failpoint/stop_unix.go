//go:build unix

package failpoint

import "syscall"

// stopSelf freezes this process until it gets SIGCONT.
func stopSelf() { _ = syscall.Kill(syscall.Getpid(), syscall.SIGSTOP) }
