package redisstore

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/redisstore/storetest"
	"github.com/holdfast-rtc/holdfast/ring"
)

// A key that holds no text, or no pin, neither ends the scan of all pins nor hides the other rooms of a node, and is said in the log. An
// index that is no set is deleted and comes back.
func TestDamagedKeysDoNotHideTheOthers(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, server storetest.Server) {
		var said bytes.Buffer // Read when Run has ended.
		store, err := Open(server.URL, slog.New(slog.NewTextHandler(&said, nil)))
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		ctx, good := t.Context(), storetest.At("a", 1000, 1)
		if _, _, err := store.Claim(ctx, "good", good); err != nil {
			t.Fatal(err)
		}
		pipe := server.Raw.Pipeline()
		pipe.RPush(ctx, pinKey("list"), "x")
		pipe.Set(ctx, pinKey("text"), "garbage", 0)
		pipe.Set(ctx, indexKey("a"), "no set", 0)
		if _, err := pipe.Exec(ctx); err != nil {
			t.Fatal(err)
		}
		visited := make(map[ring.RoomID]pin.Pin)
		if err := store.AllPins(ctx, func(h pin.Holding) error { visited[h.Room] = h.Pin; return nil }); err != nil || len(visited) != 1 || visited["good"] != good {
			t.Errorf("AllPins visited %v, %v, want the one that is a pin", visited, err)
		}
		if held, err := store.PinsOf(ctx, "a"); err == nil {
			t.Errorf("PinsOf = %v from an index that is no set", held)
		}
		running, cancel := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() { ended <- store.Run(running) }()
		eventually(t, "index to be made anew", func() bool {
			if _, err := store.Refresh(ctx, []pin.Holding{{Room: "good", Pin: good}}); err != nil {
				t.Fatal(err)
			}
			server.Raw.SAdd(ctx, indexKey("a"), "list", "text")
			held, err := store.PinsOf(ctx, "a")
			return err == nil && len(held) == 1 && held[0].Pin == good
		})
		cancel()
		<-ended
		if text := said.String(); strings.Count(text, "corrupt pin") < 2 || !strings.Contains(text, "damaged, and deleted") {
			t.Errorf("the log says:\n%s", text)
		}
	})
}
