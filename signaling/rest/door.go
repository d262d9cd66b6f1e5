package rest

import (
	"fmt"
	"net/http"

	"github.com/holdfast-rtc/holdfast/internal/events"
	"github.com/holdfast-rtc/holdfast/people/waitlist"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/signaling/access"
	"github.com/holdfast-rtc/holdfast/signaling/door"
	"github.com/holdfast-rtc/holdfast/signaling/reply"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

func (a *API) serveDoor(w http.ResponseWriter, r *http.Request) {
	a.serveOrder(w, r, func() (waitlist.Order, error) {
		var m wire.SetDoor
		if r.Method == http.MethodGet {
			return door.OrderOf(&m), nil
		}
		if err := readBody(r, maxBodyBytes, "{cap?, closed?}", &m); err != nil {
			return waitlist.Order{}, err
		}
		return door.OrderOf(&m), m.Check()
	})
}

// serveWaiting admits a person out of turn, or turns a person away.
func (a *API) serveWaiting(w http.ResponseWriter, r *http.Request) {
	a.serveOrder(w, r, func() (waitlist.Order, error) {
		who := access.Identity(r.URL.Query().Get("identity"))
		if who == "" || len(who) > access.MaxIdentityBytes {
			return waitlist.Order{}, fmt.Errorf("%w: %w", wire.ErrMalformed, ErrWhom)
		}
		if r.Method == http.MethodDelete {
			return waitlist.Order{Deed: waitlist.Turn, Identity: who}, nil
		}
		return waitlist.Order{Deed: waitlist.Admit, Identity: who}, nil
	})
}

func (a *API) serveOrder(w http.ResponseWriter, r *http.Request, read func() (waitlist.Order, error)) {
	grant, err := a.grantOf(r)
	var room ring.RoomID
	if err == nil {
		room, err = access.CheckRoom(r.URL.Query().Get("room"))
	}
	if err == nil {
		err = a.mayAsk(grant, room)
	}
	var o waitlist.Order
	if err == nil {
		o, err = read()
	}
	var now waitlist.Door
	if err == nil {
		now, err = a.deps.Doors.Order(r.Context(), room, o)
	}
	if err != nil {
		reply.Refuse(w, err)
		return
	}
	if o.Deed == waitlist.Change {
		a.ordered(r, events.Event{Kind: events.DoorChanged, Room: room, Cause: stateOfDoor(now)})
	}
	reply.JSON(w, http.StatusOK, door.Message(now))
}
