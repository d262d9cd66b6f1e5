package signaling

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/holdfast-rtc/holdfast/people/waitlist"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// silentDoors answer no entry until a number of questions was asked.
type silentDoors struct {
	doors

	left atomic.Int64
}

func (s *silentDoors) Enter(ctx context.Context, room ring.RoomID, p pin.Pin, why string, e waitlist.Entry) (pin.Pin, pin.Incarnation, waitlist.Answer, error) {
	if s.left.Add(-1) >= 0 {
		return pin.Pin{}, 0, waitlist.Answer{}, errNobody
	}
	return s.doors.Enter(ctx, room, p, why, e)
}

// Door obeys no order meanwhile either.
func (s *silentDoors) Door(ctx context.Context, room ring.RoomID, o waitlist.Order) (waitlist.Door, error) {
	if s.left.Load() > 0 {
		return waitlist.Door{}, errNobody
	}
	return s.doors.Door(ctx, room, o)
}

// fullRoom is a room for one, in which ann was until her socket broke, and for which bob waits.
type fullRoom struct {
	capped

	at     *signalingNode
	resume string
	bob    *client
	store  *silentDoors
}

func newFullRoom(t *testing.T) fullRoom {
	t.Helper()
	c := newCapped(t)
	r := fullRoom{capped: c, at: c.signalingNode(nil), store: &silentDoors{doors: c.placer.doors}}
	c.placer.doors = r.store
	ann := r.at.asks("ann", 1, true)
	r.resume = hear[*wire.Joined](ann).Resume
	r.show("ann")
	r.bob = r.at.asks("bob", 1, true)
	r.bob.waitsAt(1)
	_ = ann.conn.CloseNow()
	return r
}

// resumes is ann coming back while the store answers none of the next questions.
func (r fullRoom) resumes(unanswered int64, attempt uint64) wire.Message {
	r.t.Helper()
	r.store.left.Store(unanswered)
	c := r.at.dial()
	c.say(&wire.Resume{Resume: r.resume, Attempt: attempt})
	return c.next()
}

// moves has the room at another media node, which knows nobody.
func (r *fullRoom) moves() {
	r.t.Helper()
	r.node = r.rig.node("sfu-2")
	r.placer.set("lobby", r.node.pin(firstEpoch+1))
}

// keepsItsPlace fails if the media node was told of a leave, has anybody that the store did not count, or bob is let in.
func (r fullRoom) keepsItsPlace(people ...string) {
	r.t.Helper()
	r.node.mu.Lock()
	left := slices.ContainsFunc(r.node.heard, func(word string) bool { return strings.HasSuffix(word, "leaves") })
	var here []string
	for _, p := range r.node.peers {
		here = append(here, p.entry.GetIdentity())
	}
	r.node.mu.Unlock()
	if left || !slices.Equal(here, people) {
		r.t.Errorf("the media node has %v and heard %v, want %v and no leave", here, r.node.heard, people)
	}
	r.store.left.Store(0)
	door, err := r.store.Door(r.t.Context(), "lobby", waitlist.Order{Deed: waitlist.Look})
	if err != nil || door.Inside != 1 || door.Length != 1 {
		r.t.Errorf("the door is %+v, %v, want ann inside and bob in line", door, err)
	}
}

const never = 1 << 40

// A resume that cannot ask the door takes nobody's place and gives none away: who the media node knows is let in, who it does not
// know comes back when the store answers, and then has the place still.
func TestAResumeThatCannotAskTheDoorKeepsThePlace(t *testing.T) {
	t.Run("in the room, without media", func(t *testing.T) {
		r := newFullRoom(t)
		if _, in := r.resumes(never, 2).(*wire.Resumed); !in {
			t.Error("ann is not let in")
		}
		r.keepsItsPlace("ann")
	})
	t.Run("expected where the room moved to", func(t *testing.T) {
		r := newFullRoom(t)
		r.node.mu.Lock()
		var awaited string
		for awaited = range r.node.peers {
		}
		r.node.mu.Unlock()
		r.moves()
		r.node.expects = map[string]bool{awaited: true}
		if _, in := r.resumes(never, 2).(*wire.Resumed); !in {
			t.Error("ann is not let in")
		}
		r.keepsItsPlace("ann")
	})
	t.Run("unknown where the room moved to", func(t *testing.T) {
		r := newFullRoom(t)
		r.moves()
		for attempt := range uint64(3) {
			if got, refused := r.resumes(never, 2+attempt).(*wire.Error); !refused || got.Code != wire.CodeStoreUnavailable || !got.Retryable {
				t.Errorf("ann hears %+v", got)
			}
			r.keepsItsPlace()
		}
		if _, in := r.resumes(0, 5).(*wire.Resumed); !in {
			t.Error("ann is not let in when the store answers")
		}
		r.keepsItsPlace("ann")
	})
	t.Run("the store answers the second question", func(t *testing.T) {
		r := newFullRoom(t)
		r.moves()
		if _, in := r.resumes(1, 2).(*wire.Resumed); !in {
			t.Error("ann is not let in")
		}
		r.keepsItsPlace("ann")
	})
	t.Run("at an older media node", func(t *testing.T) {
		r := newFullRoom(t)
		r.moves()
		r.node.older = true
		if got, refused := r.resumes(never, 2).(*wire.Error); !refused || got.Code != wire.CodeStoreUnavailable {
			t.Errorf("ann hears %+v", got)
		}
		if _, in := r.resumes(0, 3).(*wire.Resumed); !in {
			t.Error("ann is not let in when the store answers")
		}
		r.keepsItsPlace("ann")
	})
}

// Whose place was given away meanwhile does not come in by a resume that could not ask.
func TestAResumeThatCannotAskTheDoorIsNoWayAroundTheCap(t *testing.T) {
	r := newFullRoom(t)
	r.moves()
	r.show("cy")
	if got, refused := r.resumes(never, 2).(*wire.Error); !refused || got.Code != wire.CodeStoreUnavailable {
		t.Errorf("ann hears %+v while the store is away", got)
	}
	r.keepsItsPlace()
	if got, refused := r.resumes(1, 3).(*wire.Error); !refused || got.Code != wire.CodeResumeExpired {
		t.Errorf("ann hears %+v when cy has her place", got)
	}
	r.keepsItsPlace()
}

// A page that reloads while the store is away cannot have its place kept at the door, so it does not leave: the media node keeps it.
func TestAReloadThatCannotKeepThePlaceIsNoLeave(t *testing.T) {
	r := newFullRoom(t)
	r.store.left.Store(0)
	c := r.at.dial()
	c.say(&wire.Resume{Resume: r.resume, Attempt: 2})
	hear[*wire.Resumed](c)
	r.store.left.Store(never)
	c.say(&wire.Leave{Back: true})
	c.closed()
	r.keepsItsPlace("ann")
}

// A store that may have forgotten who is in the room refuses nobody for good, while there may be a place.
func TestASettlingDoorRefusesForAMoment(t *testing.T) {
	r := newCapped(t)
	e := r.signalingNode(nil)
	r.show("bob")
	if got := hear[*wire.Error](e.asks("ann", 2, false)); got.Code != wire.CodeStoreUnavailable || !got.Retryable || got.RetryAfterMs == 0 {
		t.Errorf("ann hears %+v", got)
	}
	r.Raw.HSet(t.Context(), "holdfast:room:{lobby}:door", "from", 1)
	hear[*wire.Joined](e.asks("ann", 2, false))
}
