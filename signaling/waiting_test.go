package signaling

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/internal/testkit"
	"github.com/holdfast-rtc/holdfast/orchestrator"
	"github.com/holdfast-rtc/holdfast/people/waitlist"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/redisstore"
	"github.com/holdfast-rtc/holdfast/redisstore/storetest"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/signaling/access"
	"github.com/holdfast-rtc/holdfast/signaling/limits"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// doorless is a cluster whose store has no doors: everybody is let in.
type doorless struct{}

func (doorless) Enter(context.Context, ring.RoomID, pin.Pin, string, waitlist.Entry) (pin.Pin, pin.Incarnation, waitlist.Answer, error) {
	return pin.Pin{}, 0, waitlist.Answer{Outcome: waitlist.Admitted}, nil
}

func (doorless) CheckIn(context.Context, []waitlist.Asked) []waitlist.Checked { return nil }

func (doorless) Described(context.Context) (map[ring.RoomID]string, error) { return nil, nil }

func (doorless) Door(context.Context, ring.RoomID, waitlist.Order) (waitlist.Door, error) {
	return waitlist.Door{}, nil
}

// doors is what a signaling node and its placer need of a store.
type doors interface {
	Doors
	Enter(ctx context.Context, room ring.RoomID, p pin.Pin, why string, e waitlist.Entry) (pin.Pin, pin.Incarnation, waitlist.Answer, error)
}

func (p *fakePlacer) behind() doors {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.doors == nil {
		return doorless{}
	}
	return p.doors
}

func (p *fakePlacer) Enter(ctx context.Context, room ring.RoomID, expect headroom.Room, e waitlist.Entry) (pin.Pin, waitlist.Answer, error) {
	at, err := p.Place(ctx, room, expect)
	if err != nil && !errors.Is(err, waitlist.ErrDoor) && !errors.As(err, new(*orchestrator.NoHeadroomError)) {
		return pin.Pin{}, waitlist.Answer{}, err
	}
	_, _, answer, fault := p.behind().Enter(ctx, room, at, "", e)
	switch {
	case fault != nil:
		return pin.Pin{}, answer, errors.Join(orchestrator.ErrStoreUnavailable, fault)
	case answer.Outcome < waitlist.Admitted:
		return pin.Pin{}, answer, &waitlist.WaitError{Answer: answer}
	}
	if errors.Is(err, waitlist.ErrDoor) {
		err = nil
	}
	return at, answer, err
}

func (p *fakePlacer) CheckIn(ctx context.Context, rooms []waitlist.Asked) []waitlist.Checked {
	return p.behind().CheckIn(ctx, rooms)
}

func (p *fakePlacer) Described(ctx context.Context) (map[ring.RoomID]string, error) {
	return p.behind().Described(ctx)
}

func (p *fakePlacer) Door(ctx context.Context, room ring.RoomID, o waitlist.Order) (waitlist.Door, error) {
	return p.behind().Door(ctx, room, o)
}

// capped is a rig whose store has doors.
type capped struct {
	*rig

	storetest.Server
	node *node
}

func newCapped(t *testing.T) capped {
	t.Helper()
	r := newRig(t)
	server := storetest.Start(t, "miniredis")
	store, err := redisstore.Open(server.URL, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	r.placer.doors = store
	c := capped{r, server, r.node("sfu-1")}
	c.placer.set("lobby", c.node.pin(firstEpoch))
	c.show()
	return c
}

// show is the media node's roster.
func (c capped) show(who ...string) {
	c.t.Helper()
	const key = "holdfast:room:{lobby}:roster"
	fields := map[string]any{"@pin": c.node.pin(firstEpoch).Encode()}
	reserved := c.Raw.ZRange(c.t.Context(), "holdfast:room:{lobby}:admitted", 0, -1).Val()
	all := c.Raw.TxPipeline() // No check-in sees the room empty in between.
	for i, one := range who {
		fields[fmt.Sprint("p-", i)] = one + "\n0 x"
		for _, place := range reserved {
			if identity, _, _ := strings.Cut(place, "\n"); identity == one {
				all.ZRem(c.t.Context(), "holdfast:room:{lobby}:admitted", place)
			}
		}
	}
	all.Del(c.t.Context(), key)
	all.HSet(c.t.Context(), key, fields)
	if _, err := all.Exec(c.t.Context()); err != nil {
		c.t.Fatal(err)
	}
}

// asks joins a room for that many people.
func (e *signalingNode) asks(who string, limit int, wait bool) *client {
	e.rig.t.Helper()
	return e.asksAs(who, "", limit, wait)
}

// asksAs is by a name that the person chose.
func (e *signalingNode) asksAs(who, name string, limit int, wait bool) *client {
	e.rig.t.Helper()
	grant := access.Everything(who, "lobby")
	grant.MaxParticipants = limit
	c := e.dial()
	c.say(&wire.Join{Token: e.rig.mint(grant, time.Hour), Name: name, Wait: wait})
	return c
}

func (c *client) waitsAt(position int) {
	c.t.Helper()
	if got := hear[*wire.Waiting](c); got.Position != position || got.Reason != "full" || got.EstimateMs != 0 {
		c.t.Fatalf("waits %+v, want position %d", got, position)
	}
}

// A full room: who does not want to wait is refused, the others hear their place at once and at changes, and enter by themselves.
func TestWaitingForAPlace(t *testing.T) {
	r := newCapped(t)
	e := r.signalingNode(nil)
	ann := e.asks("ann", 1, false)
	hear[*wire.Joined](ann)
	r.show("ann")
	if got := hear[*wire.Error](e.asks("bob", 1, false)); got.Code != wire.CodeRoomFull || got.Retryable {
		t.Errorf("bob hears %+v", got)
	}
	bob, cy, dee := e.asks("bob", 1, true), (*client)(nil), (*client)(nil)
	bob.waitsAt(1)
	cy = e.asks("cy", 1, true)
	cy.waitsAt(2)
	dee = e.asks("dee", 1, true)
	dee.waitsAt(3)
	hear[*wire.Joined](e.asks("ann", 1, true)) // another tab
	cy.say(&wire.Leave{})
	dee.waitsAt(2)
	bob.say(&wire.View{})
	if got := hear[*wire.Error](bob); got.Code != wire.CodeBadMessage {
		t.Errorf("a view of no room gets %+v", got)
	}
	r.show()
	hear[*wire.Joined](bob)
	r.show("bob")
	dee.waitsAt(1)
	r.show()
	hear[*wire.Joined](dee)
	if n := e.doors.Waiting(); n != 0 {
		t.Errorf("%d people still wait", n)
	}
}

// The first in line is at a node that is killed. At another node she finds her place.
func TestPlaceOutlivesItsSignalingNode(t *testing.T) {
	r := newCapped(t)
	one, two := r.signalingNode(nil), r.signalingNode(nil)
	r.show("ann")
	first := one.asks("bob", 1, true)
	first.waitsAt(1)
	second := two.asks("cy", 1, true)
	second.waitsAt(2)
	one.stop()
	again := two.asks("bob", 1, true)
	again.waitsAt(1)
	r.show()
	hear[*wire.Joined](again)
	r.show("bob")
	second.waitsAt(1)
}

// Who was in the room, reloads, and says so, has her place for a while; who leaves for good has not.
func TestPlaceIsKeptOverAReload(t *testing.T) {
	r := newCapped(t)
	e := r.signalingNode(nil)
	ann := e.asks("ann", 1, true)
	hear[*wire.Joined](ann)
	r.show("ann")
	bob := e.asks("bob", 1, true)
	bob.waitsAt(1)
	ann.say(&wire.Leave{Back: true})
	ann.closed()
	r.show()
	ann = e.asks("ann", 1, true)
	hear[*wire.Joined](ann)
	r.show("ann")
	ann.say(&wire.Leave{})
	ann.closed()
	r.Raw.Del(t.Context(), "holdfast:room:{lobby}:admitted") // as the roster's script does
	r.show()
	hear[*wire.Joined](bob)
}

// Somebody was let in and never came. Only the media node knows that; it is asked, for who waits and for who does not.
func TestOwnerIsAskedWhoCame(t *testing.T) {
	for _, wait := range []bool{true, false} {
		r := newCapped(t)
		e := r.signalingNode(func(c *Config) { c.Limits.Owners = limits.Rate{PerSecond: 1000, Burst: 1} })
		if err := r.Raw.Set(t.Context(), "holdfast:room:{lobby}:node", r.node.pin(firstEpoch).Encode(), 0).Err(); err != nil {
			t.Fatal(err)
		}
		lapsed := func() { r.Raw.Do(t.Context(), "ZADD", "holdfast:room:{lobby}:admitted", 1, "ann") }
		lapsed()
		r.node.set(func() { r.node.holds = true })
		if got := hear[*wire.Error](e.asks("bob", 1, false)); got.Code != wire.CodeRoomFull {
			t.Errorf("bob hears %+v beside ann, who may be there", got)
		}
		r.node.set(func() { r.node.holds = false })
		if wait {
			bob := e.asks("bob", 1, true)
			bob.waitsAt(1)
			hear[*wire.Joined](bob)
			continue
		}
		testkit.Eventually(t, "bob to be let in", func() bool {
			_, in := e.asks("bob", 1, false).next().(*wire.Joined)
			return in
		})
	}
}

// A cap that is set live is seen by who knows of none, and a resume after the grace time is no way around it.
func TestCapSetLive(t *testing.T) {
	r := newCapped(t)
	e := r.signalingNode(nil)
	limit := 1
	if _, err := r.placer.behind().Door(t.Context(), "lobby", waitlist.Order{Deed: waitlist.Change, Cap: &limit}); err != nil {
		t.Fatal(err)
	}
	r.placer.hasDoor = true
	ann := e.asks("ann", 0, true)
	joined := hear[*wire.Joined](ann)
	r.show("ann")
	r.show("bob")
	ann.conn.CloseNow()
	e.asks("cy", 0, true).waitsAt(1)
	late := e.dial()
	late.say(&wire.Resume{Resume: joined.Resume, Attempt: 2})
	if got := hear[*wire.Error](late); got.Code != wire.CodeResumeExpired {
		t.Errorf("the resume gets %+v", got)
	}
}

// While the store is away nobody new is let in, and who waits is told nothing wrong; who is in the room resumes.
func TestDoorWithoutStore(t *testing.T) {
	r := newCapped(t)
	e := r.signalingNode(nil)
	r.show("ann")
	bob := e.asks("bob", 1, true)
	bob.waitsAt(1)
	away := &awayDoors{}
	with := r.placer.behind()
	r.placer.set("lobby", r.node.pin(firstEpoch))
	r.placer.mu.Lock()
	r.placer.doors = away
	r.placer.mu.Unlock()
	if got := hear[*wire.Error](e.asks("cy", 1, true)); got.Code != wire.CodeStoreUnavailable || !got.Retryable {
		t.Errorf("cy hears %+v", got)
	}
	r.placer.mu.Lock()
	r.placer.doors = with
	r.placer.mu.Unlock()
	r.show()
	hear[*wire.Joined](bob)
}

type awayDoors struct{ doorless }

func (awayDoors) Enter(context.Context, ring.RoomID, pin.Pin, string, waitlist.Entry) (pin.Pin, pin.Incarnation, waitlist.Answer, error) {
	return pin.Pin{}, 0, waitlist.Answer{}, errNobody
}

// A room without headroom is waited for in the same line; all enter once the first has placed it.
func TestWaitingForHeadroom(t *testing.T) {
	r := newCapped(t)
	e := r.signalingNode(nil)
	r.placer.mu.Lock()
	r.placer.fail = &orchestrator.NoHeadroomError{}
	r.placer.mu.Unlock()
	if got := hear[*wire.Error](e.asks("cy", 0, false)); got.Code != wire.CodeNoCapacity {
		t.Errorf("cy hears %+v", got)
	}
	var all []*client
	for i, who := range []string{"ann", "bob"} {
		all = append(all, e.asks(who, 0, true))
		if got := hear[*wire.Waiting](all[i]); got.Reason != "no_capacity" || got.Position != i+1 {
			t.Errorf("%s waits %+v", who, got)
		}
	}
	r.placer.mu.Lock()
	r.placer.fail = nil
	r.placer.mu.Unlock()
	for _, c := range all {
		for {
			if _, joined := c.next().(*wire.Joined); joined {
				break
			}
		}
	}
}

// Who is let in while no node has headroom goes on waiting, and enters first once there is some.
func TestLetInWithoutHeadroom(t *testing.T) {
	r := newCapped(t)
	e := r.signalingNode(nil)
	r.show("ann")
	bob := e.asks("bob", 1, true)
	bob.waitsAt(1)
	e.asks("cy", 1, true).waitsAt(2)
	r.placer.mu.Lock()
	r.placer.fail = &orchestrator.NoHeadroomError{}
	r.placer.mu.Unlock()
	r.show()
	for told := hear[*wire.Waiting](bob); told.Reason != "no_capacity"; told = hear[*wire.Waiting](bob) {
		if told.Position != 1 {
			t.Errorf("bob waits %+v", told)
		}
	}
	r.placer.mu.Lock()
	r.placer.fail = nil
	r.placer.mu.Unlock()
	for {
		if _, joined := bob.next().(*wire.Joined); joined {
			break
		}
	}
}

// A storm of changes costs a person who waits a word a second.
func TestPlacesAreCoalesced(t *testing.T) {
	r := newCapped(t)
	e := r.signalingNode(nil)
	r.show("ann")
	const ahead = 30
	for i := range ahead {
		if _, _, _, err := r.placer.behind().Enter(t.Context(), "lobby", pin.Pin{}, "", waitlist.Entry{Identity: fmt.Sprint("user-", i), Cap: 1, Wait: true}); err != nil {
			t.Fatal(err)
		}
	}
	last := e.asks("zoe", 1, true)
	last.waitsAt(ahead + 1)
	began := time.Now()
	for i := range ahead {
		if _, err := r.placer.behind().Door(t.Context(), "lobby", waitlist.Order{Deed: waitlist.Quit, Identity: fmt.Sprint("user-", i)}); err != nil {
			t.Fatal(err)
		}
	}
	words := 0
	testkit.Eventually(t, "to be first", func() bool {
		words++
		return hear[*wire.Waiting](last).Position == 1
	})
	if took := time.Since(began); words > 5+int(took/placeEvery) {
		t.Errorf("%d words about %d changes in %v", words, ahead, took)
	}
}
