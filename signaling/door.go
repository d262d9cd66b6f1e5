package signaling

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/holdfast-rtc/holdfast/orchestrator"
	"github.com/holdfast-rtc/holdfast/people/waitlist"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/signaling/access"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

const maxDoorBytes = 1 << 10

var errNotWaiting = errors.New("this person does not wait")

// atTheDoor answers with line and door. Looks repeat every few seconds, so a slow store does not hold the session up.
func (s *session) atTheDoor(ctx context.Context, m wire.Message) error {
	var o waitlist.Order
	switch m := m.(type) {
	case *wire.SetDoor:
		o = orderOf(m)
	case *wire.LetIn:
		o = waitlist.Order{Deed: waitlist.Admit, Identity: m.Identity}
	case *wire.TurnAway:
		o = waitlist.Order{Deed: waitlist.Turn, Identity: m.Identity}
	}
	if !s.who.CanModerate {
		return errNotModerator
	}
	if !s.server.limits.Door(s.person()) {
		return errFlood
	}
	room := s.who.Room
	if o.Deed != waitlist.Look {
		return s.orderAt(ctx, room, o)
	}
	s.work(func() {
		if err := s.orderAt(ctx, room, o); err != nil {
			s.socket.send(faultOf(err))
		}
	})
	return nil
}

func (s *session) orderAt(ctx context.Context, room ring.RoomID, o waitlist.Order) error {
	door, err := s.server.order(ctx, room, o)
	if err == nil {
		s.socket.send(doorMessage(door))
	}
	return err
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

func (s *Server) serveDoor(w http.ResponseWriter, r *http.Request) {
	s.serveOrder(w, r, func() (waitlist.Order, error) {
		var m wire.SetDoor
		if r.Method == http.MethodGet {
			return orderOf(&m), nil
		}
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxDoorBytes)).Decode(&m); err != nil {
			return waitlist.Order{}, fmt.Errorf("%w: %w", wire.ErrMalformed, err)
		}
		return orderOf(&m), m.Check()
	})
}

// serveWaiting admits somebody out of turn, or turns somebody away.
func (s *Server) serveWaiting(w http.ResponseWriter, r *http.Request) {
	s.serveOrder(w, r, func() (waitlist.Order, error) {
		who := r.URL.Query().Get("identity")
		if who == "" || len(who) > access.MaxIdentityBytes {
			return waitlist.Order{}, fmt.Errorf("%w: %w", wire.ErrMalformed, errWhom)
		}
		if r.Method == http.MethodDelete {
			return waitlist.Order{Deed: waitlist.Turn, Identity: who}, nil
		}
		return waitlist.Order{Deed: waitlist.Admit, Identity: who}, nil
	})
}

func (s *Server) serveOrder(w http.ResponseWriter, r *http.Request, read func() (waitlist.Order, error)) {
	grant, err := s.grantOf(r)
	var room ring.RoomID
	if err == nil {
		room, err = access.CheckRoom(r.URL.Query().Get("room"))
	}
	if err == nil {
		err = s.mayAsk(grant, room)
	}
	var o waitlist.Order
	if err == nil {
		o, err = read()
	}
	var door waitlist.Door
	if err == nil {
		door, err = s.order(r.Context(), room, o)
	}
	if err != nil {
		writeFault(w, err)
		return
	}
	writeJSON(w, http.StatusOK, doorMessage(door))
}
