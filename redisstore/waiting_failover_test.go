package redisstore

import (
	"log/slog"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-rtc/holdfast/internal/panics"
	"github.com/holdfast-rtc/holdfast/people/roster"
	"github.com/holdfast-rtc/holdfast/people/waitlist"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/redisstore/storetest"
)

// cappedRoom is a room with a cap whose media nodes die. They write its roster as the product does.
type cappedRoom struct {
	waitingRig

	cap    int
	pin    pin.Pin
	writer *roster.Writer
	book   *roster.Book
	shown  map[string]bool // people of the roster that was last written
	in     map[string]bool // people at the media node
	away   map[string]bool // shown by a node that died, and not back yet: their places are kept
	waits  map[string]bool
}

func (c *cappedRoom) open(p pin.Pin) {
	c.pin, c.writer = p, roster.NewWriter(panics.New(), slog.New(slog.DiscardHandler))
	c.writer.Store = c.store
	c.book = c.writer.Open(club, p)
	for who := range c.in {
		c.book.Put(roster.Peer{ID: who + "-1", Identity: who})
	}
}

func (c *cappedRoom) write() {
	c.writer.Touch(club) // as signaling nodes ask for
	c.must(c.writer.Flush(c.t.Context()))
	c.shown = maps.Clone(c.in)
}

// come is by who is let in.
func (c *cappedRoom) come(who string) {
	delete(c.waits, who)
	delete(c.away, who)
	c.in[who] = true
	c.book.Put(roster.Peer{ID: who + "-1", Identity: who})
}

func (c *cappedRoom) enter(who string) {
	_, _, answer, err := c.store.Enter(c.t.Context(), club, c.pin, "", entry(who, c.cap))
	c.must(err)
	switch {
	case answer.Outcome >= waitlist.Admitted:
		c.come(who)
	case c.in[who] || c.away[who]:
		c.t.Fatalf("%s has a place and is told %+v", who, answer)
	default:
		c.waits[who] = true
	}
}

func (c *cappedRoom) check() {
	who := slices.Sorted(maps.Keys(c.waits))
	if len(who) == 0 {
		return
	}
	for i, place := range c.checkIn(c.cap, who...).Places {
		switch place {
		case waitlist.LetIn:
			c.come(who[i])
		case waitlist.Gone:
			delete(c.waits, who[i])
		}
	}
}

// die has the room open elsewhere. Some people come along at once, some later, some never.
func (c *cappedRoom) die(t *rapid.T) {
	next := storetest.At("n", c.pin.Fence.Epoch+1, 1)
	now, _, err := c.store.Swap(c.t.Context(), club, c.pin, next, "")
	c.must(err)
	if now != next {
		t.Fatalf("the pin is %v, want %v", now, next)
	}
	for _, who := range slices.Sorted(maps.Keys(c.in)) {
		if !rapid.Bool().Draw(t, "comes along") {
			delete(c.in, who)
			if c.shown[who] {
				c.away[who] = true
			}
		}
	}
	c.open(next)
}

// settle is the end of the grace time.
func (c *cappedRoom) settle() {
	c.book.Settle()
	c.write()
	clear(c.away)
}

func (c *cappedRoom) step(t *rapid.T) {
	who := rapid.SampledFrom(modelPeople).Draw(t, "who")
	switch rapid.SampledFrom([]string{"enter", "enter", "enter", "check", "check", "write", "write", "pass", "mute", "die", "leave", "settle"}).Draw(t, "step") {
	case "enter":
		c.enter(who)
	case "check":
		c.check()
	case "write":
		c.write()
	case "pass": // a media node writes every second
		c.write()
		c.pass(modelTick)
		c.check()
	case "mute": // it cannot write for longer than any grace time
		for range 30 {
			c.pass(modelTick)
			c.check()
		}
	case "die":
		c.die(t)
	case "leave":
		if c.in[who] {
			c.book.Drop(who+"-1", time.Now())
			delete(c.in, who)
		}
	case "settle":
		c.settle()
	}
	c.pass(0)
	if n := len(c.in) + len(c.away); n > c.cap {
		t.Fatalf("with a cap of %d, %v are in and %v have a place", c.cap, c.in, c.away)
	}
}

// The media node of a room with a cap dies again and again, and some of its people never come back. Never is anybody over
// the cap, nobody who was in has to wait within the grace time, and after it the line moves on.
func TestWaitingOverFailovers(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, server storetest.Server) {
		r := newWaitingRig(t, server)
		rapid.Check(t, func(rt *rapid.T) {
			rig := r
			rig.t = tripped{t, rt}
			rig.must(rig.raw.FlushAll(t.Context()).Err())
			c := &cappedRoom{waitingRig: rig, cap: rapid.IntRange(1, 3).Draw(rt, "cap"), in: map[string]bool{}, away: map[string]bool{}, waits: map[string]bool{}}
			c.open(storetest.At("a", 1000, 1))
			c.enter("ann")
			c.write()
			for range rapid.IntRange(1, 40).Draw(rt, "steps") {
				c.step(rt)
			}
			c.settle()
			for range 20 { // longer than any reservation, a new owner's among them
				c.pass(modelTick)
				c.write()
				c.check()
			}
			if len(c.waits) > 0 && len(c.in) != c.cap {
				rt.Fatalf("%v wait, and only %v are in", c.waits, c.in)
			}
		})
	})
}

// A new media node that cannot write for minutes after a failover has people whom the store does not know. The cap holds, and the
// line moves on once the node writes, or says that nobody is there.
func TestWaitingForAMuteOwner(t *testing.T) {
	for _, ends := range []string{"writes", "has nobody"} {
		t.Run(ends, func(t *testing.T) {
			storetest.OnEach(t, func(t *testing.T, server storetest.Server) {
				r := newWaitingRig(t, server)
				old, next := storetest.At("a", 1000, 1), storetest.At("b", 1001, 1)
				r.enter(entry("ann", 2)) // claims the room
				r.show(map[string]string{"p-1": "ann"})
				now, _, err := r.store.Swap(t.Context(), club, old, next, "")
				if r.must(err); now != next {
					t.Fatalf("the pin is %v", now)
				}
				if got := r.enter(entry("bob", 2)); got.Outcome != waitlist.Admitted {
					t.Errorf("bob gets %+v", got)
				}
				r.enter(entry("cy", 2))
				for range 60 {
					r.pass(2 * time.Second)
					if got := r.checkIn(2, "cy"); got.Places[0] != 1 || got.Owing != next.Encode() {
						t.Fatalf("cy is told %+v beside ann and bob", got)
					}
				}
				if r.writer = next.Encode(); ends == "writes" {
					r.show(map[string]string{"p-1": "ann"})
				} else {
					r.door(waitlist.Order{Deed: waitlist.Look, Vacant: r.writer, Over: true})
				}
				if got := r.checkIn(2, "cy"); got.Places[0] != waitlist.LetIn {
					t.Errorf("cy is told %+v without bob", got)
				}
			})
		})
	}
}

// Who was let in and never came is forgotten when the room's media node writes, which it can be asked to.
func TestReservationsLapseByTheOwner(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, server storetest.Server) {
		r := newWaitingRig(t, server)
		mine := storetest.At("a", 1000, 1)
		r.enter(entry("ann", 1))
		r.pass(16 * time.Second)
		if got := r.enter(entry("bob", 1)); got.Outcome != waitlist.Waiting || got.Owing != mine.Encode() {
			t.Errorf("bob gets %+v", got)
		}
		writer := roster.NewWriter(panics.New(), slog.New(slog.DiscardHandler))
		writer.Store = r.store
		writer.Open(club, mine)
		r.must(writer.Flush(t.Context())) // ann may be on her way to a new owner
		if got := r.checkIn(1, "bob"); got.Places[0] != 1 {
			t.Errorf("bob is told %+v", got)
		}
		r.pass(36 * time.Second)
		writer.Touch(club)
		r.must(writer.Flush(t.Context()))
		for range 3 {
			r.checkIn(1, "bob")
			r.pass(2 * time.Second)
		}
		if got := r.checkIn(1, "bob"); got.Places[0] != waitlist.LetIn || got.Owing != "" {
			t.Errorf("bob is told %+v", got)
		}
	})
}

// A signaling node that goes on checking in for somebody who never arrives keeps the place for no longer than a reservation.
func TestWaitingForWhoIsGone(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, server storetest.Server) {
		r := newWaitingRig(t, server)
		r.show(map[string]string{"p-1": "ann"})
		r.enter(entry("bob", 1))
		r.enter(entry("cy", 1))
		r.show(nil)
		for range 10 {
			r.pass(2 * time.Second)
			r.checkIn(1, "bob", "cy")
		}
		if got := r.checkIn(1, "cy"); got.Places[0] != waitlist.LetIn {
			t.Errorf("cy is told %d while bob, who was let in, stays away", got.Places[0])
		}
	})
}

// A store that forgot a full room, whose media node cannot write, moves the line after 10 s: whom it lets in it calls
// Admitted, and says that it knows no roster. Once it does they are inside.
func TestWaitingInAStoreThatForgot(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, server storetest.Server) {
		r := newWaitingRig(t, server)
		r.show(map[string]string{"p-1": "ann"})
		bob := entry("bob", 1)
		bob.Ticket = r.enter(bob).Ticket
		r.must(r.raw.FlushAll(t.Context()).Err())
		if got := r.enter(bob); got.Outcome != waitlist.Waiting {
			t.Errorf("bob gets %+v", got)
		}
		var got waitlist.Checked
		for range 6 {
			r.pass(2 * time.Second)
			got = r.checkIn(1, "bob")
		}
		if got.Places[0] != waitlist.LetIn || got.Roster != "" {
			t.Errorf("bob is told %+v", got)
		}
		for _, want := range []waitlist.Outcome{waitlist.Admitted, waitlist.Inside} {
			if got := r.enter(bob); got.Outcome != want || got.Roster != (want == waitlist.Inside) {
				t.Errorf("bob gets %+v, want outcome %d", got, want)
			}
			r.show(nil)
		}
	})
}

// A line whose checks are late each time moves on all the same.
func TestWaitingForASlowNode(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, server storetest.Server) {
		r := newWaitingRig(t, server)
		r.show(map[string]string{"p-1": "ann"})
		r.enter(entry("bob", 1))
		r.show(nil)
		place := 1
		for range 4 {
			r.pass(4 * time.Second)
			place = r.checkIn(1, "bob").Places[0]
		}
		if place != waitlist.LetIn {
			t.Errorf("bob is told %d of an empty room", place)
		}
	})
}

// What a moderator set outlives the store's memory: the media node that has heard it hands it back, unless it was set anew since.
func TestDoorOutlivesTheStore(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, server storetest.Server) {
		r := newWaitingRig(t, patient(server))
		mine, one, two, closed, opened := storetest.At("a", 1000, 1), 1, 2, true, false
		writer := roster.NewWriter(panics.New(), slog.New(slog.DiscardHandler))
		writer.Store = r.store
		forgets := func() {
			t.Helper()
			r.must(r.raw.FlushAll(t.Context()).Err())
			_, _, err := r.store.Claim(t.Context(), club, mine, "")
			r.must(err)
		}
		stands := func(limit int, shut bool) {
			t.Helper()
			if door := r.door(waitlist.Order{Deed: waitlist.Look}); door.Cap != limit || door.Closed != shut || door.Pin != mine.Encode() {
				t.Errorf("the door is %+v, want a cap of %d, closed %t", door, limit, shut)
			}
		}
		forgets()
		r.must(writer.Rewrite(t.Context()))
		stands(waitlist.NoCap, false) // Nothing was set: there is no door.
		book := writer.Open(club, mine)
		book.Put(roster.Peer{ID: "ann-1", Identity: "ann"})
		r.door(waitlist.Order{Deed: waitlist.Change, Cap: &one, Closed: &closed})
		r.must(writer.Rewrite(t.Context()))

		forgets()
		r.must(writer.Rewrite(t.Context()))
		stands(one, true)
		host := entry("bob", waitlist.NoCap)
		host.Host = true
		if got := r.enter(host); got.Outcome != waitlist.Waiting {
			t.Errorf("bob gets %+v in a room for one", got)
		}

		forgets()
		r.door(waitlist.Order{Deed: waitlist.Change, Cap: &two, Closed: &opened})
		r.must(writer.Rewrite(t.Context()))
		stands(two, false)
		forgets()
		r.must(writer.Rewrite(t.Context()))
		stands(two, false)
		if got := r.enter(entry("bob", waitlist.NoCap)); got.Outcome != waitlist.Waiting {
			t.Errorf("bob gets %+v of a door that was just handed back", got)
		}
		r.pass(4 * time.Second)
		if got := r.checkIn(1, "bob"); got.Places[0] != waitlist.LetIn {
			t.Errorf("bob is told %+v 4 s later", got)
		}
	})
}
