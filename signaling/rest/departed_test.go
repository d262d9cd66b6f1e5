package rest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/internal/events"
	"github.com/holdfast-rtc/holdfast/ring"
)

// departureLog is a store with these events, unless it is away.
type departureLog struct {
	all   []events.Event
	away  bool
	asked int
}

func (l *departureLog) add(at time.Time, e events.Event) {
	e.ID, e.At = fmt.Sprintf("%d-%d", at.UnixMilli(), len(l.all)), at
	l.all = append(l.all, e)
}

func (l *departureLog) Events(_ context.Context, after string, limit int) (found []events.Event, last string, err error) {
	l.asked++
	if l.away {
		return nil, after, errors.New("away")
	}
	last = after
	for _, e := range l.all {
		if e.ID > after && len(found) < limit {
			found, last = append(found, e), e.ID
		}
	}
	return found, last, nil
}

func node(kind events.Kind, id ring.NodeID, boot string) events.Event {
	return events.Event{Kind: kind, Node: id, Role: string(cluster.RoleSFU), About: boot, Version: "0.1.0"}
}

// A signaling node that was just started reads who died from the store, and lists each name once.
func TestNodesThatAreGone(t *testing.T) {
	now := time.UnixMilli(1795783230243).UTC()
	ago := func(minutes int) time.Time { return now.Add(-time.Duration(minutes) * time.Minute) }
	log := &departureLog{}
	log.add(ago(90), node(events.NodeDown, "long-ago", "1"))
	log.add(ago(50), node(events.NodeDown, "returned", "1"))
	log.add(ago(49), node(events.NodeUp, "returned", "2"))
	// Another signaling node tells late of the boot before.
	log.add(ago(48), node(events.NodeDown, "returned", "1"))
	log.add(ago(40), node(events.NodeDown, "twice", "1"))
	log.add(ago(39), node(events.NodeUp, "twice", "2"))
	log.add(ago(30), node(events.NodeDown, "twice", "2"))
	log.add(ago(29), node(events.NodeDown, "thawed", "1"))
	log.add(ago(28), node(events.NodeBack, "thawed", "1"))
	log.add(ago(20), node(events.NodeLeft, "drained", "1"))
	log.add(ago(19), node(events.NodeDown, "drained", "1"))
	log.add(ago(10), node(events.NodeDown, "live-again", "1"))
	log.add(ago(9), events.Event{Kind: events.RoomOpened, Room: "hall", Node: "twice"})
	view := &cluster.View{Nodes: map[ring.NodeID]cluster.Node{"live-again": {ID: "live-again", Boot: "2"}}}
	d := newDeparted(log)
	want := map[ring.NodeID]string{"twice": "dead 2", "drained": "left 1"}
	check := func(at time.Time) {
		t.Helper()
		found := d.all(t.Context(), view, at)
		got := map[ring.NodeID]string{}
		for name, gone := range found {
			got[name.ID] = string(gone.how) + " " + string(gone.boot)
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%v, want %v", got, want)
		}
	}
	check(now)
	view.Nodes["twice"] = cluster.Node{ID: "twice", Boot: "3"}
	delete(want, "twice")
	check(now)

	// A silent store is not asked again at once, and what is known stays.
	log.away = true
	log.add(now, node(events.NodeDown, "new", "1"))
	check(now)
	asked := log.asked
	check(now.Add(departedRetry / 2))
	if log.asked != asked {
		t.Error("a store that did not answer was asked again at once")
	}
	log.away = false
	want["new"] = "dead 1"
	check(now.Add(departedRetry))
	delete(want, "drained")
	check(now.Add(45 * time.Minute))
}
