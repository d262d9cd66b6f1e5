package sfu

import (
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/sfu/bandwidth"
)

// narrow sends faster than the path carries: one packet in so much time.
func narrow(p *bandwidth.Path, each time.Duration) {
	pace := time.NewTicker(time.Millisecond)
	defer pace.Stop()
	for i := range 100 {
		at := time.Duration(i) * each
		p.Feedback(bandwidth.Report{
			Base: p.Next(1200), Reference: uint32(at / (64 * time.Millisecond)),
			Packets: []bandwidth.Arrival{{Received: true, Delta: at % (64 * time.Millisecond)}},
		})
		<-pace.C
	}
}

// budgetOf is what forwarding limits a peer to.
func (s *stage) budgetOf(room, peer string) uint64 {
	s.t.Helper()
	reply, err := s.client.Rooms(s.t.Context(), &control.RoomsRequest{Media: true})
	if err != nil {
		s.t.Fatal(err)
	}
	for _, r := range reply.GetRooms() {
		for _, p := range r.GetPeers() {
			if r.GetRoom() == room && p.GetId() == peer {
				return p.GetMedia().GetEstimateBitsPerSecond()
			}
		}
	}
	return 0
}

// TestThePathsEstimateMoves: a node tells what it found, a new node begins with it, and so does a new connection of the same peer.
func TestThePathsEstimateMoves(t *testing.T) {
	first, second := newStage(t, "one"), newStage(t, "two")
	e, _ := first.attach("room", "alice", 1)
	alice := newMediaClient(t, 'a', false, 2)
	alice.negotiate(e, nil)
	if got := first.budgetOf("room", "alice"); got != 0 {
		t.Fatalf("a path of which nothing is known is limited to %d", got)
	}
	narrow(first.connectionOf("room", "alice").Path(), 20*time.Millisecond)
	isTold := func(event *control.PeerEvent) bool { return event.GetPath() != nil }
	told := e.await("what the path carries", isTold).GetPath().GetBitsPerSecond()
	if told < 300_000 || told > 500_000 { // 1200 bytes in 20 ms are 480 kbit/s
		t.Fatalf("told %d", told)
	}
	if _, attached := first.attach("room", "alice", 2); attached.GetPathBitsPerSecond() != told {
		t.Errorf("another signaling node is told %d, want %d", attached.GetPathBitsPerSecond(), told)
	}

	second.epoch++
	moved, attached := second.attach("room", "alice", 2, func(a *control.Attach) { a.PathBitsPerSecond = told })
	if attached.GetPathBitsPerSecond() != told {
		t.Errorf("the new node says %d, want %d", attached.GetPathBitsPerSecond(), told)
	}
	newMediaClient(t, 'a', false, 2).negotiate(moved, nil)
	eventually(t, "the new node begins with what was told", func() bool { return second.budgetOf("room", "alice") == told })

	narrow(second.connectionOf("room", "alice").Path(), 50*time.Millisecond)
	now := moved.await("what the path carries now", isTold).GetPath().GetBitsPerSecond()
	if now >= told*3/4 {
		t.Errorf("told %d of a path that has become narrower", now)
	}
	newMediaClient(t, 'a', false, 2).negotiate(moved, nil)
	eventually(t, "the old connection is closed", func() bool {
		return second.connectionOf("room", "alice").Path().Target() == second.budgetOf("room", "alice")
	})
	if got := second.budgetOf("room", "alice"); got > told*3/4 || got == 0 {
		t.Errorf("a new connection of the peer begins with %d, the old one had found %d", got, now)
	}
}
