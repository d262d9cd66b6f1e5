package redisstore

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/redisstore/storetest"
	"github.com/holdfast-rtc/holdfast/ring"
)

func TestNotesOfARoom(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, server storetest.Server) {
		ctx, store := t.Context(), open(t, patient(server))
		const room = ring.RoomID("a}b{c%d")
		read := func(room ring.RoomID, names ...string) []string {
			t.Helper()
			before := store.RoundTrips()
			texts, err := store.Notes(ctx, room, names...)
			if err != nil || store.RoundTrips()-before > 1 {
				t.Fatalf("notes %v, %v after %d round trips", texts, err, store.RoundTrips()-before)
			}
			return texts
		}
		note := func(notes map[string]string, life time.Duration) {
			t.Helper()
			before := store.RoundTrips()
			if err := store.Note(ctx, room, notes, life); err != nil || store.RoundTrips()-before > 1 {
				t.Fatalf("%v after %d round trips", err, store.RoundTrips()-before)
			}
		}
		if got := read(room, "one", "two"); !slices.Equal(got, []string{"", ""}) {
			t.Errorf("a room without notes has %q", got)
		}
		note(map[string]string{"one": "1", "}:node": "2"}, time.Hour)
		note(map[string]string{"one": "3"}, time.Hour)
		note(map[string]string{"never": "4"}, 0)
		if got := read(room, "}:node", "one", "never"); !slices.Equal(got, []string{"2", "3", ""}) {
			t.Errorf("the notes are %q", got)
		}
		if got := read("other", "one"); !slices.Equal(got, []string{""}) {
			t.Errorf("another room has %q", got)
		}
		if got := read(room); len(got) != 0 {
			t.Errorf("no name has %q", got)
		}
		left, err := server.Raw.TTL(ctx, keyspace(pin.DefaultCluster).note(room, "one")).Result()
		if err != nil || left <= 59*time.Minute || left > time.Hour {
			t.Errorf("a note of an hour lives %v, %v", left, err)
		}
		if err := store.AllPins(ctx, func(h pin.Holding) error { t.Errorf("a note is read as the pin %v", h); return nil }); err != nil {
			t.Error(err)
		}
		gone, cancel := context.WithCancel(ctx)
		cancel()
		if err := store.Note(gone, room, map[string]string{"one": "5"}, time.Hour); err == nil {
			t.Error("a cancelled note was written")
		}
	})
}

func FuzzNoteKey(f *testing.F) {
	for _, name := range []string{"", "ended/p-1", "}:node", "{", "x}:node"} {
		f.Add("room", name)
	}
	f.Fuzz(func(t *testing.T, id, name string) {
		key := keyspace(pin.DefaultCluster).note(ring.RoomID(id), name)
		_, rest, _ := strings.Cut(key, "{")
		if tag, _, _ := strings.Cut(rest, "}"); tag != escape(id) {
			t.Fatalf("key %q of room %q is not in the room's slot", key, id)
		}
		if room, err := keyspace(pin.DefaultCluster).room(key); err == nil {
			t.Fatalf("note %q reads as the pin of %q", key, room)
		}
	})
}
