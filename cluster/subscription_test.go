package cluster

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdfast-rtc/holdfast/pin"
)

func isEnd(e Event) bool { return e.Kind == EventDead || e.Kind == EventLeft }

// TestUnreadEventsAreMerged checks the promise of Subscribe against a reader that
// reads now and then: every death is read, and what is read last of a boot is its last state.
func TestUnreadEventsAreMerged(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newSubscription()
		owed := map[pin.BootID]bool{} // a death was pushed and none read since
		last := map[pin.BootID]EventKind{}
		read := func() {
			e := s.pending[0]
			s.pending = s.pending[1:]
			if isEnd(e) {
				owed[e.Node.Boot] = false
			}
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			if len(s.pending) > 0 && rapid.IntRange(0, 3).Draw(t, "read") == 0 {
				read()
				continue
			}
			e := Event{
				Kind: rapid.SampledFrom([]EventKind{EventJoined, EventDead, EventLeft}).Draw(t, "kind"),
				Node: sfuNode("a", rapid.IntRange(1, 3).Draw(t, "boot")),
			}
			if !s.push(e) {
				t.Fatal("overflow")
			}
			last[e.Node.Boot] = e.Kind
			owed[e.Node.Boot] = owed[e.Node.Boot] || isEnd(e)
			if len(s.pending) > 6 {
				t.Fatalf("%d events wait for 3 boots", len(s.pending))
			}
		}
		final := map[pin.BootID]EventKind{}
		for _, e := range s.pending {
			final[e.Node.Boot] = e.Kind
		}
		for boot, kind := range final {
			if wanted := last[boot]; kind != wanted {
				t.Fatalf("last to be read of %s is %s, it is %s", boot, kind, wanted)
			}
		}
		for len(s.pending) > 0 {
			read()
		}
		for boot, missed := range owed {
			if missed {
				t.Fatalf("a death of %s was never read", boot)
			}
		}
	})
}

func TestOverflowEndsTheSubscription(t *testing.T) {
	s := newSubscription()
	for n := range maxPending {
		if !s.push(Event{Kind: EventDead, Node: sfuNode("a", n+1)}) {
			t.Fatalf("full after %d events", n)
		}
	}
	if s.push(Event{Kind: EventDead, Node: sfuNode("a", maxPending+1)}) {
		t.Fatal("one more event than fits was taken")
	}
	go s.deliver()
	var read []Event
	for e := range s.events {
		read = append(read, e)
	}
	if len(read) != maxPending || !slices.IsSortedFunc(read, func(a, b Event) int {
		if a.Node.Boot < b.Node.Boot {
			return -1
		}
		return 1
	}) {
		t.Fatalf("%d events read in order before the channel closed, want %d", len(read), maxPending)
	}
}
