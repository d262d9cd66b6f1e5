package sfu

import (
	"testing"

	"github.com/holdfast-rtc/holdfast/control"
)

// TestTheProcessTellsWhatIsInUse: garbage does not count after a collection, what is held does.
func TestTheProcessTellsWhatIsInUse(t *testing.T) {
	s := newStage(t, "one")
	heap := func() uint64 {
		t.Helper()
		reply, err := s.client.Process(t.Context(), &control.ProcessRequest{Collect: true})
		if err != nil || reply.GetNode() != "one" || reply.GetGoroutines() == 0 {
			t.Fatalf("%+v %v", reply, err)
		}
		return reply.GetHeapBytes()
	}
	// Far more than what tests before this one may still be letting go of.
	const size, leftovers = 64 << 20, 16 << 20
	before := heap()
	held := make([]byte, size)
	for i := range held {
		held[i] = byte(i)
	}
	during := heap()
	if during < before+size-leftovers {
		t.Errorf("%d bytes with 64 MiB more, %d before", during, before)
	}
	held[0]++ // It is used to here.
	if after := heap(); after > before+leftovers {
		t.Errorf("%d bytes when they are garbage, %d before", after, before)
	}
}
