package sfu

import (
	"errors"
	"testing"

	"github.com/holdfast-rtc/holdfast/control"
)

func TestOutboxKeepsOrderAndLastWords(t *testing.T) {
	o := newOutbox()
	for seq := range uint64(outboxEvents) {
		if !o.send(&control.PeerEvent{Seq: seq}) {
			t.Fatalf("event %d does not fit", seq)
		}
	}
	if o.send(&control.PeerEvent{}) {
		t.Error("the box has no bound")
	}
	o.end(&control.PeerEvent{Seq: outboxEvents})
	o.end(&control.PeerEvent{Seq: 1})
	next := uint64(0)
	err := o.drain(func(e *control.PeerEvent) error {
		if e.GetSeq() != next {
			t.Fatalf("event %d comes after %d", e.GetSeq(), next)
		}
		next++
		return nil
	})
	if err != nil || next != outboxEvents+1 {
		t.Errorf("%d events were written, %v", next, err)
	}
	broken := newOutbox()
	broken.send(&control.PeerEvent{})
	gone := errors.New("gone")
	if err := broken.drain(func(*control.PeerEvent) error { return gone }); !errors.Is(err, gone) {
		t.Errorf("drain = %v", err)
	}
}

func TestASlowSignalingNodeLosesItsStreamAndNotItsPeer(t *testing.T) {
	s := newStage(t, "one")
	s.attach("room", "slow", 1)
	held := s.node.Held()
	s.node.mu.Lock()
	r := s.node.rooms[held[0].Room]
	s.node.mu.Unlock()
	// One task says more than the stream's writer can send, however fast that is.
	if err := r.do(t.Context(), func() {
		for slow := r.peers["slow"]; slow.outbox != nil; {
			r.roll.announce(&peer{}, &control.RosterChange{Change: &control.RosterChange_Left{Left: "nobody"}})
		}
	}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the stream has ended", func() bool { return !s.heldPeer("room", "slow").GetAttached() })
	if s.heldPeer("room", "slow") == nil {
		t.Fatal("the peer is gone")
	}
	if _, attached := s.attach("room", "slow", 2); len(attached.GetRoster()) != 1 {
		t.Errorf("the next stream is told %v", attached)
	}
}
