package sfu

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/people/roster"
)

// rosterStub is a store of one room's roster.
type rosterStub struct {
	mu    sync.Mutex
	here  map[string]string // names by peer
	left  map[string]time.Duration
	epoch uint64
	seq   uint64 // of the last change
	ended bool   // the wait for the former owner's people
}

func (s *rosterStub) WriteRosters(_ context.Context, changes []roster.Change) ([]roster.Outcome, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	outcomes := make([]roster.Outcome, len(changes))
	for i, c := range changes {
		outcomes[i], s.epoch, s.seq = roster.Written, c.Pin.Fence.Epoch, c.Seq
		s.ended = s.ended || c.Settled
		if c.After == 0 {
			clear(s.here)
		}
		for _, p := range c.Put {
			s.here[p.ID] = p.Name
		}
		for _, l := range c.Drop {
			delete(s.here, l.Peer.ID)
			s.left[l.Peer.ID] = time.Since(l.LastSeen)
		}
	}
	return outcomes, nil
}

// text is "peer=name ..." and the epoch's distance.
func (s *rosterStub) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []string
	for _, id := range slices.Sorted(maps.Keys(s.here)) {
		all = append(all, id+"="+s.here[id])
	}
	return strings.Join(all, " ")
}

// While the store is silent, people whose node died cannot come back: the grace time of their rows begins when it answers again.
func TestPeopleAreWaitedForWhileTheStoreIsSilent(t *testing.T) {
	t.Parallel() // it waits for grace times
	const grace = time.Second
	s := newStage(t, "one", func(c *Config) { c.Grace = grace })
	s.owner.setSilent(true)
	store := &rosterStub{here: map[string]string{}, left: map[string]time.Duration{}}
	writer := s.node.Rosters()
	writer.Store = store
	ended := func() bool {
		if err := writer.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		store.mu.Lock()
		defer store.mu.Unlock()
		return store.ended
	}
	s.attach("room", "alice", 1)
	tick := time.NewTicker(grace / 10)
	defer tick.Stop()
	for began := time.Now(); time.Since(began) < 3*grace; <-tick.C {
		if ended() {
			t.Fatalf("people are waited for no longer %v after the room opened, and the store is silent", time.Since(began))
		}
	}
	s.owner.setSilent(false)
	eventually(t, "the wait ends once the store answers", ended)
}

// The store follows joins, new names, grace times, people who are expected, leaves and a higher pin.
func TestTheStoreHasTheRoster(t *testing.T) {
	t.Parallel() // it waits for grace times
	const grace = 10 * time.Second
	s := newStage(t, "one", func(c *Config) { c.Grace = grace })
	store := &rosterStub{here: map[string]string{}, left: map[string]time.Duration{}}
	writer := s.node.Rosters()
	writer.Store = store
	shows := func(want string) {
		t.Helper()
		eventually(t, "the store has "+want, func() bool {
			if err := writer.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			return store.text() == want
		})
	}
	alice, _ := s.attach("room", "alice", 1, func(a *control.Attach) {
		a.Expected = []*control.Peer{{Id: "eve", Identity: "eve", Name: "Eve"}}
	})
	shows("alice=alice eve=Eve")
	bob, _ := s.attach("room", "bob", 1)
	bob.send(&control.PeerMessage{Message: &control.PeerMessage_Rename{Rename: &control.Rename{Name: "Bobby"}}})
	shows("alice=alice bob=Bobby eve=Eve")
	bob.cancel()
	shows("alice=alice bob=Bobby eve=Eve")
	shows("alice=alice") // after the grace time, of both
	store.mu.Lock()
	if ago := store.left["bob"]; ago < grace {
		t.Errorf("bob was seen %v ago, want the grace time at least", ago)
	}
	store.mu.Unlock()
	before := store.seq
	if _, err := s.client.Holds(t.Context(), &control.HoldsRequest{Room: "room"}); err != nil {
		t.Fatal(err)
	}
	if shows("alice=alice"); store.seq == before {
		t.Error("who asks for the room does not have it written")
	}
	// A node whose store lost its memory, and a room that goes on under a higher pin of this boot.
	store.mu.Lock()
	clear(store.here)
	store.mu.Unlock()
	if err := writer.Rewrite(t.Context()); err != nil {
		t.Fatal(err)
	}
	shows("alice=alice")
	s.node.Fence("room", s.pin(s.epoch+1))
	eventually(t, "the new pin is written", func() bool {
		_ = writer.Flush(t.Context())
		store.mu.Lock()
		defer store.mu.Unlock()
		return store.epoch == s.epoch+1
	})
	alice.cancel()
	shows("")
}
