package redisstore

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/events"
	"github.com/holdfast-rtc/holdfast/internal/testkit"
	"github.com/holdfast-rtc/holdfast/redisstore/storetest"
	"github.com/holdfast-rtc/holdfast/ring"
)

// pages reads all events, so many at a time.
func pages(t *testing.T, store *Store, limit int) (all []events.Event) {
	t.Helper()
	for after := ""; ; {
		found, last, err := store.Events(t.Context(), after, limit)
		if err != nil {
			t.Fatal(err)
		}
		if last == after {
			return all
		}
		all, after = append(all, found...), last
	}
}

func TestEventsAreKeptOnceAndInOrder(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, server storetest.Server) {
		ctx, store := t.Context(), open(t, patient(server))
		var facts []events.Event
		for i := range 25 {
			facts = append(facts, events.Event{Kind: events.RoomOpened, Room: ring.RoomID(fmt.Sprintf("hall-%d", i)), Node: "sfu-1", About: "7/8"})
		}
		before := store.RoundTrips()
		for range 3 { // three nodes report the same
			if err := store.AppendEvents(ctx, facts); err != nil {
				t.Fatal(err)
			}
		}
		if trips := store.RoundTrips() - before; trips != 3 {
			t.Errorf("%d round trips, want one a call", trips)
		}
		again := facts[0]
		again.About = "8/9" // the room opened anew
		if err := store.AppendEvents(ctx, []events.Event{again}); err != nil {
			t.Fatal(err)
		}
		for _, limit := range []int{1, 7, 1000} {
			found := pages(t, store, limit)
			var rooms []ring.RoomID
			for _, e := range found {
				rooms = append(rooms, e.Room)
				if age := time.Since(e.At); age < -time.Minute || age > 10*time.Minute {
					t.Errorf("%s was written %v ago", e.ID, age)
				}
			}
			if len(found) != 26 || rooms[0] != "hall-0" || rooms[24] != "hall-24" || rooms[25] != "hall-0" {
				t.Errorf("%d at a time: %v", limit, rooms)
			}
		}
		if found, last, err := store.Events(ctx, events.Before(time.Now().Add(time.Hour)), 10); len(found) != 0 || err != nil {
			t.Errorf("after the last: %v, %q, %v", found, last, err)
		}
		if _, _, err := store.Events(ctx, "yesterday", 10); err == nil {
			t.Error("an id that is none was taken")
		}
	})
}

func TestEventsAreBounded(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, server storetest.Server) {
		ctx, store := t.Context(), open(t, patient(server))
		store.eventsKept, store.eventsLife = 300, time.Hour
		const written = 2000
		for first := 0; first < written; first += 100 {
			var facts []events.Event
			for i := range 100 {
				facts = append(facts, events.Event{Kind: events.RoomClosed, Room: ring.RoomID(fmt.Sprintf("hall-%d", first+i)), Node: "sfu-1"})
			}
			if err := store.AppendEvents(ctx, facts); err != nil {
				t.Fatal(err)
			}
		}
		// Redis trims whole nodes of its tree, of a hundred entries each.
		found := pages(t, store, 1000)
		if len(found) < 300 || len(found) > 500 {
			t.Errorf("%d events are kept, want 300 and a little more", len(found))
		}
		if newest := found[len(found)-1].Room; newest != ring.RoomID(fmt.Sprintf("hall-%d", written-1)) {
			t.Errorf("the newest is %s", newest)
		}
		store.eventsLife = time.Millisecond
		testkit.Eventually(t, "old events go", func() bool {
			if err := store.AppendEvents(ctx, []events.Event{{Kind: events.NodeUp, Node: "sfu-1", About: fmt.Sprint(time.Now().UnixNano())}}); err != nil {
				t.Fatal(err)
			}
			return !slices.ContainsFunc(pages(t, store, 1000), func(e events.Event) bool { return e.Room == "hall-1700" })
		})
	})
}
