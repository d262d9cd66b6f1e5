package sfu

import (
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/internal/testkit"
)

// TestADrainEndsWithTheLastRoom: a room that was handed over counts until its clients have closed their
// connections, an empty one closes at once, and no room is opened.
func TestADrainEndsWithTheLastRoom(t *testing.T) {
	s := newStage(t, "drained", func(c *Config) { c.DrainTimeout = time.Hour })
	ada, _ := s.attach("full", "ada", 1)
	client := newMediaClient(t, 'a', true, 1)
	client.negotiate(ada, nil)
	ada.awaitConnected()
	bob, _ := s.attach("left", "bob", 1)
	bob.send(&control.PeerMessage{Message: &control.PeerMessage_Leave{Leave: &control.Leave{}}})
	if now := s.node.DrainState(); now.Draining || now.Rooms != 2 {
		t.Fatalf("before: %+v", now)
	}
	testkit.Eventually(t, "bob to leave", func() bool { return s.node.DrainState().Peers == 1 })
	reply, err := s.client.Drain(t.Context(), &control.DrainRequest{Exit: true})
	if err != nil || !reply.GetDraining() || reply.GetNode() != "drained" || reply.GetPeers() != 1 {
		t.Fatalf("the drain was answered %v, %v", reply, err)
	}
	select {
	case <-s.node.DrainChanged():
	case <-time.After(patience):
		t.Fatal("nobody was told of the drain")
	}
	testkit.Eventually(t, "the empty room to close", func() bool { return s.node.DrainState().Rooms == 1 })
	if got := s.refusal(s.attachMessage(s.pin(s.epoch), "new", "carol", 1)); got.GetCode() != control.Refusal_REFUSAL_DRAINING {
		t.Errorf("a new room: %v", got)
	}
	s.attach("full", "dora", 1) // open rooms go on

	higher := s.pin(s.epoch + 1)
	higher.Node, higher.Boot = "other", "1769000000000-other"
	if _, err := s.client.Outrank(t.Context(), &control.OutrankRequest{Room: "full", Pin: control.PinProto(higher), Live: true}); err != nil {
		t.Fatal(err)
	}
	ada.await("Fenced", func(e *control.PeerEvent) bool { return e.GetFenced() != nil })
	if now := s.node.DrainState(); now.Rooms != 1 || now.Open != 0 || !now.Exit || now.Overdue {
		t.Errorf("while the room lingers: %+v", now)
	}
	if err := client.pc.Close(); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the room to close", func() bool { return s.node.DrainState().Rooms == 0 })
}

// TestADrainIsUndone, its deadline passes, and a foolish one is refused.
func TestADrainIsUndone(t *testing.T) {
	s := newStage(t, "undrained")
	if _, err := s.client.Drain(t.Context(), &control.DrainRequest{DeadlineMs: uint32((25 * time.Hour).Milliseconds())}); err == nil {
		t.Error("a deadline of 25 hours was taken")
	}
	if _, err := s.client.Drain(t.Context(), &control.DrainRequest{DeadlineMs: 1}); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the deadline", func() bool { return s.node.DrainState().Overdue })
	s.node.StartDrain(Drain{Exit: true, Deadline: time.Hour})
	s.node.StartDrain(Drain{Deadline: time.Hour})
	if now := s.node.DrainState(); !now.Exit || now.Overdue {
		t.Errorf("asked again: %+v", now)
	}
	reply, err := s.client.Drain(t.Context(), &control.DrainRequest{Undrain: true})
	if err != nil || reply.GetDraining() {
		t.Fatalf("undone: %v, %v", reply, err)
	}
	s.attach("room", "ada", 1)
}

func TestAnOrderForAnotherProcessDoesNothing(t *testing.T) {
	s := newStage(t, "restarted")
	order := func(request *control.DrainRequest) {
		t.Helper()
		reply, err := s.client.Drain(t.Context(), request)
		if err != nil || reply.GetBoot() != string(s.node.cfg.Boot) || reply.GetDraining() != s.node.DrainState().Draining {
			t.Errorf("%v is answered %v, %v", request, reply, err)
		}
	}
	order(&control.DrainRequest{Exit: true, Boot: "1768000000000-restarted"})
	if s.node.DrainState().Draining {
		t.Error("it drains by an order for its former process")
	}
	order(&control.DrainRequest{Boot: string(s.node.cfg.Boot)})
	order(&control.DrainRequest{Undrain: true, Boot: "1768000000000-restarted"})
	if !s.node.DrainState().Draining {
		t.Error("it takes rooms again by an order for its former process")
	}
}

// TestARoomThatEmptiedInAnUndoneDrainCloses: when its last peer went, the grace time was none, and it is long by the time that is judged.
func TestARoomThatEmptiedInAnUndoneDrainCloses(t *testing.T) {
	s := newStage(t, "undrained", func(c *Config) { c.Grace = time.Second })
	s.attach("room", "ada", 1)
	s.node.StartDrain(Drain{})
	s.node.mu.Lock()
	r := s.node.rooms["room"]
	s.node.mu.Unlock()
	if err := r.do(t.Context(), func() {
		for _, p := range r.peers {
			r.people.remove(p, "left")
		}
		s.node.Undrain()
	}); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the empty room to close", func() bool { return s.node.DrainState().Rooms == 0 })
}
