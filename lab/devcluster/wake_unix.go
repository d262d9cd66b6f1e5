//go:build unix

package devcluster

import "syscall"

// wake lets a stopped process hear that it was told to end.
func wake(p *process) { _ = p.signal(syscall.SIGCONT) }
