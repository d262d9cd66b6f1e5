package redisstore

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/redisstore/storetest"
	"github.com/holdfast-rtc/holdfast/ring"
)

// A key that holds no text, or no pin, neither ends the scan of all pins nor hides the other rooms, and is
// said in the log.
func TestDamagedKeysDoNotHideTheOthers(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, server storetest.Server) {
		var said bytes.Buffer
		store, err := Open(server.URL, slog.New(slog.NewTextHandler(&said, nil)))
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		ctx, good := t.Context(), storetest.At("a", 1000, 1)
		if _, _, err := store.Claim(ctx, "good", good, ""); err != nil {
			t.Fatal(err)
		}
		pipe := server.Raw.Pipeline()
		pipe.RPush(ctx, pinKey("list"), "x")
		pipe.Set(ctx, pinKey("text"), "garbage", 0)
		if _, err := pipe.Exec(ctx); err != nil {
			t.Fatal(err)
		}
		visited := make(map[ring.RoomID]pin.Pin)
		if err := store.AllPins(ctx, func(h pin.Holding) error { visited[h.Room] = h.Pin; return nil }); err != nil || len(visited) != 1 || visited["good"] != good {
			t.Errorf("AllPins visited %v, %v, want the one that is a pin", visited, err)
		}
		if text := said.String(); strings.Count(text, "corrupt pin") < 2 {
			t.Errorf("the log says:\n%s", text)
		}
	})
}
