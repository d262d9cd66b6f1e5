package storetest

import (
	"syscall"
	"testing"
)

// Freeze stops the process, connections and all.
func (p *Process) Freeze(t testing.TB) { p.signal(t, syscall.SIGSTOP) }

// Thaw lets it go on with what it finds in its sockets.
func (p *Process) Thaw(t testing.TB) { p.signal(t, syscall.SIGCONT) }

func (p *Process) signal(t testing.TB, s syscall.Signal) {
	t.Helper()
	if err := p.running.Process.Signal(s); err != nil {
		t.Fatalf("signal the server at %s: %v", p.Address, err)
	}
}
