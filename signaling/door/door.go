// Package door keeps one signaling node's part of the doors of capped rooms: the people who wait here, and the orders of those who run a room.
//
// The store decides who enters. This package checks in, once a second and in one round trip, for all who wait here, and asks a media node
// for the roster that a line waits for. An order may be lost, since places lapse. Begin with Doors.
package door

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/internal/backoff"
	"github.com/holdfast-rtc/holdfast/internal/panics"
	"github.com/holdfast-rtc/holdfast/orchestrator"
	"github.com/holdfast-rtc/holdfast/people/waitlist"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/signaling/fault"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

const (
	// As long as a media node keeps lost people: a dead node's people may come back.
	grace    = 35 * time.Second
	askLimit = 2 * time.Second
)

// ErrNotWaiting refuses an order about somebody who is not in the line.
var ErrNotWaiting = fault.New(wire.CodeBadMessage, "this person does not wait", "")

// Store keeps who may enter capped rooms; see redisstore.
type Store interface {
	CheckIn(ctx context.Context, rooms []waitlist.Asked) []waitlist.Checked
	Door(ctx context.Context, room ring.RoomID, o waitlist.Order) (waitlist.Door, error)
}

// Views gives the current view.
type Views interface {
	View() *cluster.View
}

// Limits bounds the questions to media nodes.
type Limits interface {
	AskOwner(room ring.RoomID) bool
}

// Deps is what Doors need.
type Deps struct {
	Store  Store
	Pool   *control.Pool
	Views  Views
	Limits Limits
	Panics *panics.Guard
	Log    *slog.Logger
}

// Doors is one signaling node's part. All methods may be called concurrently.
type Doors struct {
	deps Deps
	line waitlist.List
}

// New returns Doors that need Run.
func New(deps Deps) *Doors {
	d := &Doors{deps: deps}
	d.line.Dead, d.line.Grace = d.isDead, grace
	return d
}

// Run checks in for those who wait, and asks media nodes for rosters, until ctx ends.
func (d *Doors) Run(ctx context.Context) {
	var both sync.WaitGroup
	both.Go(func() { d.checkIn(ctx) })
	both.Go(func() { d.askOwners(ctx) })
	both.Wait()
}

// Wait adds somebody to those for whom Run checks in.
func (d *Doors) Wait(m *waitlist.Member, place waitlist.Place) { d.line.Add(m, place) }

// Unwait ends Wait. last says that nobody of this identity waits for the room here any more.
func (d *Doors) Unwait(m *waitlist.Member) (last bool) { return d.line.Remove(m) }

// Waiting counts the people who wait here.
func (d *Doors) Waiting() int { return d.line.Len() }

// OrderOf is what a client's message orders. A message that changes nothing looks.
func OrderOf(m *wire.SetDoor) waitlist.Order {
	if m.Cap == nil && m.Closed == nil {
		return waitlist.Order{Deed: waitlist.Look}
	}
	return waitlist.Order{Deed: waitlist.Change, Cap: m.Cap, Closed: m.Closed}
}

// Message is what a client is told of a door.
func Message(d waitlist.Door) *wire.Door {
	m := &wire.Door{Closed: d.Closed, Inside: d.Inside, Length: d.Length, Line: make(wire.List[wire.InLine], 0, len(d.Line))}
	if d.Cap >= 0 {
		m.Cap = &d.Cap
	}
	for _, w := range d.Line {
		since := int64(0)
		if !w.Since.IsZero() {
			since = w.Since.UnixMilli()
		}
		m.Line = append(m.Line, wire.InLine{Identity: w.Identity, Name: w.Name, Since: since})
	}
	return m
}

// Order changes a door, or lets somebody in or turns somebody away, who must be waiting.
func (d *Doors) Order(ctx context.Context, room ring.RoomID, o waitlist.Order) (waitlist.Door, error) {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	door, err := d.deps.Store.Door(ctx, room, o)
	switch {
	case err != nil:
		return door, errors.Join(orchestrator.ErrStoreUnavailable, err)
	case o.Identity != "" && !door.Done:
		return door, fmt.Errorf("%w: %w", wire.ErrMalformed, ErrNotWaiting)
	case o.Deed != waitlist.Look:
		d.deps.Log.Info("moderated", "room", room, "deed", o.Deed, "identity", o.Identity, "cap", door.Cap, "closed", door.Closed)
	}
	if (o.Deed == waitlist.Change || o.Deed == waitlist.Make || o.Deed == waitlist.Forget) && door.Pin != "" {
		if _, err := d.writes(ctx, room, door.Pin); err != nil { // else with its next roster
			d.deps.Log.Debug("a media node has not heard of a change of the door", "room", room, "pin", door.Pin, "error", err)
		}
	}
	return door, nil
}

// Do gives an order whose loss costs little. It reports whether the store has obeyed.
func (d *Doors) Do(ctx context.Context, room ring.RoomID, o waitlist.Order) bool {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	_, err := d.deps.Store.Door(ctx, room, o)
	if err != nil {
		d.deps.Log.Debug("not done at the door", "room", room, "deed", o.Deed, "error", err)
	}
	return err == nil
}

// checkIn is one round trip a second for all.
func (d *Doors) checkIn(ctx context.Context) {
	backoff.Every(ctx, waitlist.CheckInEvery, func() {
		d.deps.Panics.Catch(d.deps.Log, "a check-in broke", func() {
			asked := d.line.Asked(time.Now())
			if len(asked) == 0 {
				return
			}
			limited, cancel := context.WithTimeout(ctx, askLimit)
			defer cancel()
			d.line.Heard(asked, d.deps.Store.CheckIn(limited, asked))
		})
	})
}

// askOwners asks media nodes for rosters that people here wait for.
func (d *Doors) askOwners(ctx context.Context) {
	backoff.Every(ctx, waitlist.CheckInEvery, func() {
		for _, owed := range d.line.Owing(time.Now()) {
			d.deps.Panics.Catch(d.deps.Log, "a question to a room's media node broke", func() { d.AskOwner(ctx, owed) })
		}
	})
}

// AskOwner has the media node of a room write the roster. If nobody is in the room, the door forgets unused admissions.
func (d *Doors) AskOwner(ctx context.Context, owed waitlist.Owed) {
	if !d.deps.Limits.AskOwner(owed.Room) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	if vacant, err := d.writes(ctx, owed.Room, owed.Pin); err != nil || !vacant {
		d.deps.Log.Debug("a media node owes a roster", "room", owed.Room, "pin", owed.Pin, "error", err)
		return
	}
	d.Do(ctx, owed.Room, waitlist.Order{Deed: waitlist.Look, Vacant: owed.Pin, Over: owed.Over})
}

// writes has the pin's media node write the roster, by which it learns the door's settings. vacant: the room is empty.
func (d *Doors) writes(ctx context.Context, room ring.RoomID, text string) (vacant bool, err error) {
	p, err := pin.Parse(text)
	if err != nil {
		return false, err
	}
	client, err := d.deps.Pool.Client(p.Control)
	if err != nil {
		return false, err
	}
	reply, err := client.Holds(ctx, &control.HoldsRequest{Room: string(room)})
	return err == nil && reply.GetBoot() == string(p.Boot) && reply.GetPin() == nil, err
}

func (d *Doors) isDead(roster string) bool {
	p, err := pin.Parse(roster)
	if err != nil {
		return false
	}
	switch d.deps.Views.View().Liveness(p.Node, p.Boot) {
	case cluster.Departed, cluster.Replaced:
		return true
	default:
		return false
	}
}
