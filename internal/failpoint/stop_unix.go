//go:build unix

package failpoint

import "syscall"

// stopSelf freezes the process until somebody sends it SIGCONT.
func stopSelf() { _ = syscall.Kill(syscall.Getpid(), syscall.SIGSTOP) }
