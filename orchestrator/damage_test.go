package orchestrator

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/internal/testkit"
	"github.com/holdfast-rtc/holdfast/orchestrator/pinowner"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/redisstore"
	"github.com/holdfast-rtc/holdfast/redisstore/storetest"
	"github.com/holdfast-rtc/holdfast/ring"
)

// markerKey is where redisstore keeps the incarnation of a store.
const markerKey = "holdfast:generation"

// An absurd load report is as good as one of a full node, and leaves the bound of the others alone.
func TestAbsurdLoadReportCountsAsFull(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		full := headroom.Egress{BitsPerSecond: 1_000_000_000, PacketsPerSecond: 100_000}
		view := func(lie headroom.Egress) *cluster.View {
			var nodes []cluster.Node
			for id, says := range map[string]headroom.Egress{"a": lie, "b": full.Part(0.75), "c": full.Part(0.3), "d": full.Part(0.3)} {
				node := sfu(id, 1)
				node.Load.EgressBitsPerSecond, node.Load.EgressPacketsPerSecond = says.BitsPerSecond, says.PacketsPerSecond
				nodes = append(nodes, node)
			}
			return viewOf(nodes...)
		}
		absurd := headroom.Egress{
			BitsPerSecond:    rapid.OneOf(rapid.Just[uint64](math.MaxUint64), rapid.Uint64Min(full.BitsPerSecond)).Draw(t, "bits"),
			PacketsPerSecond: rapid.OneOf(rapid.Just[uint64](math.MaxUint64), rapid.Uint64Min(full.PacketsPerSecond)).Draw(t, "packets"),
		}
		one := New(testkit.NewMemoryStore(), fixed(view(full)), &addresses{}, patient(), quiet)
		other := New(testkit.NewMemoryStore(), fixed(view(absurd)), &addresses{}, patient(), quiet)
		for i := range rapid.IntRange(1, 60).Draw(t, "rooms") {
			room := ring.RoomID(strconv.Itoa(i))
			want, err := one.Place(context.Background(), room, headroom.Room{})
			got, lied := other.Place(context.Background(), room, headroom.Room{})
			if (err == nil) != (lied == nil) || got.Node != want.Node || got.Node == "a" {
				t.Fatalf("room %s went to %q (%v), want %q (%v): a reports %v", room, got.Node, lied, want.Node, err, absurd)
			}
		}
	})
}

// Whatever lies under the keys of a pin and of the marker: the owner keeps its room, the next join logs the damage
// and ends on a higher pin of the owner, and both keys are repaired.
func FuzzDamageIsHealed(f *testing.F) {
	for _, text := range []string{"", "garbage", "1|5|0|n|b|c", "1|9007199254740993|0000000000000001|a|b|c", "\x00 not a string", "\xff", strings.Repeat("x", 4096)} {
		f.Add(text, text)
	}
	f.Add("0|5000|0000000000000001|a|0000000000001-a|a.test:7000", strings.Repeat("0", 40)+".0000000000000001")
	var servers []storetest.Server
	for _, kind := range storetest.Kinds() {
		servers = append(servers, storetest.Start(f, kind))
	}
	f.Fuzz(func(t *testing.T, text, marker string) {
		if _, err := pin.Parse(text); err == nil || errors.Is(err, pin.ErrLater) || strings.HasPrefix(marker, "unnamed.") {
			return // It is no damage.
		}
		for _, server := range servers {
			damage(t, server, text, marker)
		}
	})
}

func damage(t *testing.T, server storetest.Server, text, marker string) {
	ctx, room := t.Context(), class
	if err := server.Raw.MSet(ctx, keyOf(room), text, markerKey, marker).Err(); err != nil {
		t.Fatal(err)
	}
	store, err := redisstore.Open(server.URL, quiet)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	ours := pinAt("b", 1, 5000, 7)
	open := testkit.NewRooms(pin.Holding{Room: room, Pin: ours})
	owner := pinowner.New(store, open, pinowner.DefaultConfig(), quiet)
	if err := owner.Refresh(ctx); err != nil || len(open.Fenced()) != 0 || server.Raw.Get(ctx, keyOf(room)).Val() != text {
		t.Fatalf("%s: the owner ended with %v, was told %v", server.Name, err, open.Fenced())
	}
	if all, err := store.Incarnations(ctx); err != nil || !owner.Synced().Has(all[0]) || server.Raw.Get(ctx, markerKey).Val() == marker {
		t.Fatalf("%s: incarnation %x, %v; synced in %x", server.Name, all, err, owner.Synced().All())
	}
	var said bytes.Buffer
	where := &addresses{holds: map[string]map[ring.RoomID]pin.Pin{ours.Control: {room: ours}}}
	signaling := New(store, fixed(viewOf(sfu("a", 1), sfu("b", 1), sfu("c", 1))), where, patient(), slog.New(slog.NewTextHandler(&said, nil)))
	now := uint64(time.Now().UnixMilli())
	got, err := signaling.Place(ctx, room, headroom.Room{})
	if err != nil || got.Boot != ours.Boot || got.Fence.Epoch < now || server.Raw.Get(ctx, keyOf(room)).Val() != got.Encode() {
		t.Fatalf("%s: Place = %v, %v over %q, want a pin of the owner above the clock", server.Name, got, err, text)
	}
	if !strings.Contains(said.String(), "corrupt pin") {
		t.Errorf("%s: the log says nothing of %q", server.Name, text)
	}
	if err := owner.Refresh(ctx); err != nil || len(open.Fenced()) != 1 || open.Fenced()[0].Pin != got {
		t.Errorf("%s: the owner ended with %v, and was told %v, want its new pin", server.Name, err, open.Fenced())
	}
}
