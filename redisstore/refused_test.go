package redisstore

import (
	"testing"

	"github.com/holdfast-rtc/holdfast/redisstore/storetest"
)

// A server that refuses writes answers reads: its pins can be read, and its incarnation is not told, so that owners do not rely on it.
func TestIncarnationIsNotToldWhileWritesAreRefused(t *testing.T) {
	server := storetest.Start(t, "redis")
	ctx, store, a := t.Context(), open(t, patient(server)), storetest.At("a", 1000, 1)
	if _, _, err := store.Claim(ctx, "r", a, ""); err != nil {
		t.Fatal(err)
	}
	before, err := store.Incarnations(ctx)
	if err != nil || len(before) != 1 {
		t.Fatalf("Incarnations = %v, %v", before, err)
	}
	for name, refuse := range map[string]struct{ on, off []any }{
		"NOREPLICAS": {[]any{"config", "set", "min-replicas-to-write", 1}, []any{"config", "set", "min-replicas-to-write", 0}},
		"READONLY":   {[]any{"replicaof", "127.0.0.1", 1}, []any{"replicaof", "no", "one"}},
	} {
		t.Run(name, func(t *testing.T) {
			if err := server.Raw.Do(ctx, refuse.on...).Err(); err != nil {
				t.Fatal(err)
			}
			if p, _, err := store.Get(ctx, "r"); p != a || err != nil {
				t.Errorf("Get = %v, %v, want the pin", p, err)
			}
			if _, _, err := store.Claim(ctx, "r", a, ""); err == nil {
				t.Error("a claim succeeded")
			}
			if told, err := store.Incarnations(ctx); err == nil || len(told) != 0 {
				t.Errorf("Incarnations = %v, %v, want none and why", told, err)
			}
			if err := server.Raw.Do(ctx, refuse.off...).Err(); err != nil {
				t.Fatal(err)
			}
			if after, err := store.Incarnations(ctx); err != nil || len(after) != 1 || after[0] != before[0] {
				t.Errorf("when it takes writes again Incarnations = %v, %v, want %v", after, err, before)
			}
		})
	}
}
