//go:build unix

package devcluster

import "syscall"

// wake continues a stopped process, which was told to end.
func wake(p *process) { _ = p.signal(syscall.SIGCONT) }
