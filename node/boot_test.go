package node

import (
	"log/slog"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/redisstore"
	"github.com/holdfast-rtc/holdfast/redisstore/storetest"
)

// TestABootIsAboveThoseInTheStore, and above one that another member knows, also while the store is silent.
func TestABootIsAboveThoseInTheStore(t *testing.T) {
	server := storetest.Start(t, "miniredis")
	log := slog.New(slog.DiscardHandler)
	open := func(url string) *redisstore.Store {
		store, err := redisstore.Open(url, log)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { store.Close() })
		return store
	}
	store := open(server.URL)
	former := pin.NewBootID(time.Now().Add(time.Hour))
	boot := newBoot(t.Context(), store, cluster.RoleSFU, "one", former, log)
	if !boot.Newer(former) {
		t.Errorf("the boot %s is not above %s", boot, former)
	}
	if next := newBoot(t.Context(), store, cluster.RoleSFU, "one", "", log); !next.Newer(boot) {
		t.Errorf("the next boot %s is not above %s", next, boot)
	}
	if blind := newBoot(t.Context(), open("redis://127.0.0.1:1"), cluster.RoleSFU, "one", former, log); !blind.Newer(former) {
		t.Errorf("without a store the boot %s is not above %s", blind, former)
	}
}
