package rest

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/events"
	"github.com/holdfast-rtc/holdfast/orchestrator"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/signaling/access"
	"github.com/holdfast-rtc/holdfast/signaling/reply"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// Events reads what happened in the cluster; see redisstore.
type Events interface {
	Events(ctx context.Context, after string, limit int) (found []events.Event, last string, err error)
}

const (
	eventsAtOnce = 1000
	// eventsRead bounds what is read for one request, with the events that the filter leaves out.
	eventsRead  = 10_000
	eventsLimit = 5 * time.Second
)

type eventsAnswer struct {
	Events []events.Event `json:"events"`
	// Next is what to ask for as `after`.
	Next string `json:"next"`
	// More says that further events can be asked for at once.
	More bool `json:"more"`
}

// roomLike returns the room of a name. A name that no room can have stays, and is found nowhere.
func roomLike(name string) ring.RoomID {
	room, err := access.CheckRoom(name)
	if err != nil {
		return ring.RoomID(name)
	}
	return room
}

type eventsQuestion struct {
	after  string
	limit  int
	filter events.Filter
}

// questionOf reads ?after=ID or ?since=1h (also a time of RFC 3339), &room=, &node=, &kind= (again for more), &limit=.
func questionOf(query url.Values, now time.Time) (eventsQuestion, error) {
	q := eventsQuestion{after: query.Get("after"), limit: eventsAtOnce, filter: events.Filter{
		Room: roomLike(query.Get("room")), Node: ring.NodeID(query.Get("node")),
	}}
	for _, kind := range query["kind"] {
		if !events.Kind(kind).Known() {
			return q, fmt.Errorf("kind %.40q is none that events have", kind)
		}
		q.filter.Kinds = append(q.filter.Kinds, events.Kind(kind))
	}
	if text := query.Get("limit"); text != "" {
		limit, err := strconv.Atoi(text)
		if err != nil || limit < 1 || limit > eventsAtOnce {
			return q, fmt.Errorf("limit is a number from 1 to %d, not %.40q", eventsAtOnce, text)
		}
		q.limit = limit
	}
	if q.after != "" {
		_, err := events.TimeOf(q.after)
		return q, err //nolint:wrapcheck // it says what an id is
	}
	if text := query.Get("since"); text != "" {
		since, err := time.Parse(time.RFC3339, text)
		if err != nil {
			ago, err := time.ParseDuration(text)
			if err != nil || ago < 0 {
				return q, fmt.Errorf("since is a duration such as 90m, or a time such as 2026-11-27T09:00:00Z, not %.40q", text)
			}
			since = now.Add(-ago)
		}
		q.after = events.Before(since)
	}
	return q, nil
}

func (a *API) serveEvents(w http.ResponseWriter, r *http.Request) {
	q, err := questionOf(r.URL.Query(), time.Now())
	if err != nil {
		reply.Refuse(w, fmt.Errorf("%w: %w", wire.ErrMalformed, err))
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), eventsLimit)
	defer cancel()
	answer, err := q.ask(ctx, a.deps.Events)
	if err != nil {
		a.deps.Log.Debug("events not read", "error", err)
		reply.Refuse(w, fmt.Errorf("%w: %w", orchestrator.ErrStoreUnavailable, err))
		return
	}
	reply.JSON(w, http.StatusOK, answer)
}

func (q eventsQuestion) ask(ctx context.Context, log Events) (eventsAnswer, error) {
	answer := eventsAnswer{Events: []events.Event{}, Next: q.after}
	for read := 0; read < eventsRead; read += eventsAtOnce {
		found, last, err := log.Events(ctx, answer.Next, eventsAtOnce)
		if err != nil {
			return answer, err //nolint:wrapcheck // only logged
		}
		if last == answer.Next {
			return answer, nil
		}
		for _, e := range found {
			if q.filter.Selects(e) {
				answer.Events = append(answer.Events, e)
			}
			if answer.Next = e.ID; len(answer.Events) == q.limit {
				answer.More = true
				return answer, nil
			}
		}
		answer.Next = last
	}
	answer.More = true
	return answer, nil
}
