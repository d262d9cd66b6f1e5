package sfu

import (
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/headroom"
)

func TestReservationsEndAsPeopleAreMeasured(t *testing.T) {
	cost := headroom.Expect(4).Cost()
	last := cost
	for age := time.Duration(0); age <= reservationLife; age += time.Second {
		now := reserved(cost, age, 4, 0)
		if !now.Fits(last) {
			t.Fatalf("the reservation grows at %v: %v after %v", age, now, last)
		}
		last = now
	}
	if last != (headroom.Egress{}) {
		t.Errorf("the reservation never ends: %v", last)
	}
	if half := reserved(cost, reservationLife/2, 4, 0); half != cost.Part(0.5) {
		t.Errorf("half-way %v of %v is reserved", half, cost)
	}
	if one := reserved(cost, 0, 4, 3); one != cost.Part(0.25) {
		t.Errorf("with three of four measured %v of %v is reserved", one, cost)
	}
	if none := reserved(cost, 0, 4, 7); none != (headroom.Egress{}) {
		t.Errorf("with everybody measured %v is reserved", none)
	}
}

func TestMeter(t *testing.T) {
	var m meter
	at := time.UnixMilli(1769000000000)
	m.observe(headroom.Egress{BitsPerSecond: 100, PacketsPerSecond: 10}, at)
	if got := m.observe(headroom.Egress{BitsPerSecond: 300, PacketsPerSecond: 20}, at.Add(100*time.Millisecond)); got != (headroom.Egress{}) {
		t.Errorf("a tenth of a second gives %v", got)
	}
	if got := m.observe(headroom.Egress{BitsPerSecond: 2100, PacketsPerSecond: 110}, at.Add(2*time.Second)); got != (headroom.Egress{BitsPerSecond: 1000, PacketsPerSecond: 50}) {
		t.Errorf("rate is %v", got)
	}
}

// A room is charged what it sends as soon as everybody in it is measured, and its edges are told.
func TestARoomIsChargedWhatItSends(t *testing.T) {
	s := newStage(t, "one")
	reserve := func(a *control.Attach) {
		a.ExpectedSize, a.ExpectedEgress = 2, control.EgressProto(headroom.Expect(2).Cost())
	}
	aliceEdge, _ := s.attach("room", "alice", 1, reserve)
	if got := s.node.Load(); got.EgressBitsPerSecond < headroom.Expect(2).Cost().BitsPerSecond/2 {
		t.Errorf("a room that was opened is charged %d bit/s", got.EgressBitsPerSecond)
	}
	bobEdge, _ := s.attach("room", "bob", 1)
	for tag, e := range map[byte]*edge{'a': aliceEdge, 'b': bobEdge} {
		c := newMediaClient(t, tag, true, 2)
		c.negotiate(e, nil)
		c.goSend()
	}
	told := bobEdge.await("what the room sends", func(e *control.PeerEvent) bool { return e.GetEgress().GetBitsPerSecond() > 0 }).GetEgress()
	if load := s.node.Load(); load.EgressBitsPerSecond > 4*told.GetBitsPerSecond() {
		t.Errorf("the room sends %d bit/s and is charged %d", told.GetBitsPerSecond(), load.EgressBitsPerSecond)
	}
	if _, attached := s.attach("room", "carol", 1); attached.GetEgress() == nil {
		t.Error("a newcomer's edge is not told what the room sends")
	}
}

// A room that reserves nothing is judged by its cost all the same.
func TestAnUnreservedRoomIsJudgedAndNotCharged(t *testing.T) {
	s := newStage(t, "one", func(c *Config) { c.CeilingBitsPerSecond = 2 * headroom.Expect(2).Cost().BitsPerSecond })
	s.attach("free", "mallory", 1, func(a *control.Attach) { a.ExpectedSize, a.Unreserved = 2, true })
	if got := s.node.Load(); got.EgressBitsPerSecond != 0 || got.Rooms != 1 {
		t.Errorf("it is charged: %+v", got)
	}
	s.attach("honest", "ada", 1, func(a *control.Attach) { a.ExpectedSize = 2 })
	big := s.attachMessage(s.pin(s.epoch), "big", "mallory", 1)
	big.GetAttach().ExpectedSize, big.GetAttach().Unreserved = 30, true
	if got := s.refusal(big); got.GetCode() != control.Refusal_REFUSAL_NO_HEADROOM {
		t.Errorf("a room over the ceiling: %v", got)
	}
}
