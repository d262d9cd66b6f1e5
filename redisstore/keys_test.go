package redisstore

import (
	"strings"
	"testing"

	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

// pinKey and markerKey are those of a cluster that nobody named.
func pinKey(room ring.RoomID) string { return keyspace(pin.DefaultCluster).pin(room) }

const markerKey = pin.DefaultCluster + markerName

func TestKeysGolden(t *testing.T) {
	for _, c := range []struct {
		room ring.RoomID
		key  string
	}{
		{"standup", "holdfast:room:{standup}:node"},
		{"a}b{c%d", "holdfast:room:{a%7Db%7Bc%25d}:node"},
		{"", "holdfast:room:{%}:node"},
		{"}:node", "holdfast:room:{%7D:node}:node"},
		{"Füße 会議", "holdfast:room:{Füße 会議}:node"},
	} {
		if got := pinKey(c.room); got != c.key {
			t.Errorf("pinKey(%q) = %q, want %q", c.room, got, c.key)
		}
	}
}

func TestRoomOfRefusesForeignKeys(t *testing.T) {
	for _, key := range []string{
		"", "other:room:{a}:node", "room:{a}:node", "holdfast:room:{}:node", "holdfast:room:{a}:nodes", "holdfast:room:a:node", "holdfast:room:{a%7b}:node", "holdfast:room:{a%}:node", "holdfast:room:{%41}:node", "holdfast:room:{a}b}:node", "holdfast:room:{:node",
	} {
		if room, err := keyspace(pin.DefaultCluster).room(key); err == nil {
			t.Errorf("room(%q) = %q, want an error", key, room)
		}
	}
}

func FuzzKey(f *testing.F) {
	for _, id := range []string{"", "a", "{", "}", "%", "%7B", "a}b{c", "}:node"} {
		f.Add(id)
	}
	f.Fuzz(func(t *testing.T, id string) {
		key := pinKey(ring.RoomID(id))
		// Redis Cluster hashes what is between the first "{" and the first "}" after
		// it, when that is not empty.
		_, rest, _ := strings.Cut(key, "{")
		if tag, _, ok := strings.Cut(rest, "}"); !ok || tag == "" || tag != escape(id) {
			t.Fatalf("key %q of room %q has the hash tag %q", key, id, tag)
		}
		if back, err := keyspace(pin.DefaultCluster).room(key); err != nil || string(back) != id {
			t.Fatalf("room %q came back as %q, %v", id, back, err)
		}
		// The id as a foreign tag: either refused, or what would be written again.
		if back, err := unescape(id); err == nil && escape(back) != id {
			t.Fatalf("tag %q reads as %q, which is written %q", id, back, escape(back))
		}
	})
}
