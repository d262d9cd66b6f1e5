package data

import (
	"fmt"
	"runtime"
	"testing"
)

// TestWhatAClientCosts bounds what the node's end of a client's channels takes in memory, without DTLS. The client's own end of the test is
// in the same process, so both together are bounded.
func TestWhatAClientCosts(t *testing.T) {
	const clients, most = 100, 192 << 10
	h := newHall(t)
	taken := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc + m.StackInuse
	}
	before := taken()
	for i := range clients {
		h.enter(fmt.Sprint(i))
	}
	if each := (taken() - before) / clients; each > most {
		t.Errorf("a client takes %d KiB, want at most %d", each>>10, most>>10)
	} else {
		t.Logf("a client and its other end take %d KiB", each>>10)
	}
}
