package rest

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/events"
	"github.com/holdfast-rtc/holdfast/people/waitlist"
)

// ordered records an order and who gave it. Each order is an event of its own.
func (a *API) ordered(r *http.Request, order events.Event) {
	if grant, err := a.grantOf(r); err == nil {
		order.By = grant.Identity
	}
	if order.About == "" {
		order.About = strconv.FormatInt(time.Now().UnixNano(), 36)
	}
	a.deps.Recorder.Record(order)
}

// stateOfDoor says in words what became of a door.
func stateOfDoor(d waitlist.Door) string {
	state := "open"
	if d.Closed {
		state = "closed"
	}
	if d.Cap > 0 {
		state += fmt.Sprintf(", cap %d", d.Cap)
	}
	return state
}
