package signaling

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/internal/backoff"
	"github.com/holdfast-rtc/holdfast/orchestrator"
	"github.com/holdfast-rtc/holdfast/people/waitlist"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

var errNotWaiting = errors.New("this person does not wait")

func orderOf(m *wire.SetDoor) waitlist.Order {
	if m.Cap == nil && m.Closed == nil {
		return waitlist.Order{Deed: waitlist.Look}
	}
	return waitlist.Order{Deed: waitlist.Change, Cap: m.Cap, Closed: m.Closed}
}

func doorMessage(d waitlist.Door) *wire.Door {
	m := &wire.Door{Closed: d.Closed, Inside: d.Inside, Length: d.Length, Line: make(wire.List[wire.InLine], 0, len(d.Line))}
	if d.Cap >= 0 {
		m.Cap = &d.Cap
	}
	for _, w := range d.Line {
		m.Line = append(m.Line, wire.InLine{Identity: w.Identity, Name: w.Name, Since: unixMilli(w.Since)})
	}
	return m
}

// order requires whom it names to wait.
func (s *Server) order(ctx context.Context, room ring.RoomID, o waitlist.Order) (waitlist.Door, error) {
	ctx, cancel := context.WithTimeout(ctx, checkInLimit)
	defer cancel()
	door, err := s.parts.Doors.Door(ctx, room, o)
	switch {
	case err != nil:
		return door, errors.Join(orchestrator.ErrStoreUnavailable, err)
	case o.Identity != "" && !door.Done:
		return door, fmt.Errorf("%w: %w", wire.ErrMalformed, errNotWaiting)
	case o.Deed != waitlist.Look:
		s.log.Info("moderated", "room", room, "deed", o.Deed, "identity", o.Identity, "cap", door.Cap, "closed", door.Closed)
	}
	if o.Deed == waitlist.Change && door.Pin != "" {
		if _, err := s.writes(ctx, room, door.Pin); err != nil { // else with its next roster
			s.log.Debug("a media node has not heard of a change of the door", "room", room, "pin", door.Pin, "error", err)
		}
	}
	return door, nil
}

// atDoor reports whether the store has obeyed. An order may be lost: places lapse.
func (s *Server) atDoor(ctx context.Context, room ring.RoomID, o waitlist.Order) bool {
	ctx, cancel := context.WithTimeout(ctx, checkInLimit)
	defer cancel()
	_, err := s.parts.Doors.Door(ctx, room, o)
	if err != nil {
		s.log.Debug("not done at the door", "room", room, "deed", o.Deed, "error", err)
	}
	return err == nil
}

// checkIn is one round trip a second for all.
func (s *Server) checkIn(ctx context.Context) {
	backoff.Every(ctx, waitlist.CheckInEvery, func() {
		s.panics.Survives(s.log, "a check-in broke", func() {
			asked := s.line.Asked(time.Now())
			if len(asked) == 0 {
				return
			}
			limited, cancel := context.WithTimeout(ctx, checkInLimit)
			defer cancel()
			s.line.Heard(asked, s.parts.Doors.CheckIn(limited, asked))
		})
	})
}

// askOwners asks media nodes for rosters that people here wait for.
func (s *Server) askOwners(ctx context.Context) {
	backoff.Every(ctx, waitlist.CheckInEvery, func() {
		for _, owed := range s.line.Owing(time.Now()) {
			s.panics.Survives(s.log, "a question to a room's media node broke", func() { s.askOwner(ctx, owed) })
		}
	})
}

// If nobody is in the room, the door forgets unused admissions.
func (s *Server) askOwner(ctx context.Context, owed waitlist.Owed) {
	if !s.limits.AskOwner(owed.Room) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, checkInLimit)
	defer cancel()
	if vacant, err := s.writes(ctx, owed.Room, owed.Pin); err != nil || !vacant {
		s.log.Debug("a media node owes a roster", "room", owed.Room, "pin", owed.Pin, "error", err)
		return
	}
	s.atDoor(ctx, owed.Room, waitlist.Order{Deed: waitlist.Look, Vacant: owed.Pin, Over: owed.Over})
}

// writes has the pin's media node write the roster, by which it learns the door's settings. vacant: the room is empty.
func (s *Server) writes(ctx context.Context, room ring.RoomID, text string) (vacant bool, err error) {
	p, err := pin.Parse(text)
	if err != nil {
		return false, err
	}
	client, err := s.parts.Pool.Client(p.Control)
	if err != nil {
		return false, err
	}
	reply, err := client.Holds(ctx, &control.HoldsRequest{Room: string(room)})
	return err == nil && reply.GetBoot() == string(p.Boot) && reply.GetPin() == nil, err
}

func (s *Server) isDead(roster string) bool {
	p, err := pin.Parse(roster)
	if err != nil {
		return false
	}
	switch s.parts.Views.View().Liveness(p.Node, p.Boot) {
	case cluster.Departed, cluster.Replaced:
		return true
	default:
		return false
	}
}
