//go:build unix

package devcluster

import "syscall"

// A stopped process could not end.
func wake(p *process) { _ = p.signal(syscall.SIGCONT) }
