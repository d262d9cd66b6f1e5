package redisstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/panics"
	"github.com/holdfast-rtc/holdfast/internal/testkit"
	"github.com/holdfast-rtc/holdfast/people/roster"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/redisstore/storetest"
	"github.com/holdfast-rtc/holdfast/ring"
)

// While one master of a Cluster is silent, the rosters of the others are written, and the error says that no other lacks any.
func TestASilentMasterKeepsBackOnlyItsRosters(t *testing.T) {
	t.Parallel() // most of it is waiting
	fleet := storetest.StartCluster(t)
	store, writer := open(t, patient(fleet.Server)), roster.NewWriter(panics.New(), slog.New(slog.DiscardHandler))
	writer.Store = store
	silent, p := fleet.Processes[0], storetest.At("a", 1000, 1)
	var changes []roster.Change // the silent master's first
	var elsewhere []ring.RoomID
	for i := range 60 {
		room := ring.RoomID(fmt.Sprintf("room-%d", i))
		if _, _, err := store.Claim(t.Context(), room, p, ""); err != nil {
			t.Fatal(err)
		}
		writer.Open(room, p).Put(roster.Peer{ID: "1", Identity: "ann"})
		change := roster.Change{Room: room, Pin: p, Seq: 1}
		if fleet.MasterOf(t, pinKey(room)) == silent {
			changes = slices.Insert(changes, 0, change)
		} else {
			elsewhere, changes = append(elsewhere, room), append(changes, change)
		}
	}
	silent.Freeze(t)
	t.Cleanup(func() { silent.Thaw(t) })
	testkit.Eventually(t, "two incarnations and an error", func() bool {
		all, err := store.Incarnations(within(t, time.Second))
		return err != nil && len(all) == 2
	})
	if err := writer.Rewrite(t.Context()); !errors.Is(err, pin.ErrUnreachable) {
		t.Errorf("Rewrite = %v, want pin.ErrUnreachable", err)
	}
	for _, room := range elsewhere {
		if found, err := store.Roster(t.Context(), room); err != nil || !found.Current || len(found.Peers) != 1 {
			t.Errorf("the roster of %s is %+v, %v", room, found, err)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for range 2 {
		if _, err := store.WriteRosters(ended, changes); err == nil || errors.Is(err, pin.ErrUnreachable) {
			t.Errorf("WriteRosters = %v, and all masters lack something", err)
		}
		slices.Reverse(changes)
	}
	silent.Thaw(t)
	testkit.Eventually(t, "all rosters to be written", func() bool { return writer.Rewrite(t.Context()) == nil })
}
