// Package redisstore keeps pins in Redis: every key and every script of placement is
// here. It promises that each write of a pin is atomic, that each call is one round trip
// where its comment says so, that a repeated call (a lost reply) ends the same way, and
// that no call waits longer than its context or the connection's time-outs.
//
// It does not know what a pin means: it compares and sets their texts. It imports
// nothing that stands above it; orchestrator and failover declare the interfaces that it fills.
package redisstore

import (
	"context"
	"errors"
	"log/slog"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

// Store is a client of one Redis (later also Sentinel and Cluster). Its methods
// may be called from any goroutine.
type Store struct {
	client redis.UniversalClient
	log    *slog.Logger
}

var errUnbuilt = errors.New("not built yet")

// Open returns a store for a redis:// or rediss:// URL. It does not connect.
func Open(_ string, _ *slog.Logger) (*Store, error) { return nil, errUnbuilt }

// Close closes the connections.
func (s *Store) Close() error { return s.client.Close() }

// Run writes the index of rooms by node, which is a hint, until ctx ends.
func (s *Store) Run(_ context.Context) error { return errUnbuilt }

// Ping reports whether the store answers.
func (s *Store) Ping(_ context.Context) error { return errUnbuilt }

// RoundTrips is how many times the store was asked since Open (a pipeline counts once).
func (s *Store) RoundTrips() uint64 { return 0 }

// Claim is SET NX GET EX: it writes p unless the room has a pin, and returns the one that stands.
func (s *Store) Claim(_ context.Context, _ ring.RoomID, _ pin.Pin) (pin.Pin, error) {
	return pin.Pin{}, errUnbuilt
}

// Swap replaces old by next; see orchestrator.Claims.
func (s *Store) Swap(_ context.Context, _ ring.RoomID, _, _ pin.Pin) (pin.Pin, error) {
	return pin.Pin{}, errUnbuilt
}

// Repair replaces a value that is no pin by next; see orchestrator.Claims.
func (s *Store) Repair(_ context.Context, _ ring.RoomID, _ string, _ pin.Pin) (pin.Pin, error) {
	return pin.Pin{}, errUnbuilt
}

// Get returns the pin that stands, and false when there is none.
func (s *Store) Get(_ context.Context, _ ring.RoomID) (pin.Pin, bool, error) {
	return pin.Pin{}, false, errUnbuilt
}

// Refresh prolongs the pins of the rooms held; see orchestrator.Keeps.
func (s *Store) Refresh(_ context.Context, _ []pin.Holding) ([]pin.Found, error) {
	return nil, errUnbuilt
}

// PinsOf returns the rooms pinned to node as far as the index knows: every one returned is
// pinned to node now, but some may be missing (AllPins finds them).
func (s *Store) PinsOf(_ context.Context, _ ring.NodeID) ([]pin.Holding, error) {
	return nil, errUnbuilt
}

// AllPins calls visit for every pin in the store, by SCAN: a pin that stands all the while is
// visited at least once, perhaps more than once. Corrupt values are logged and skipped.
func (s *Store) AllPins(_ context.Context, _ func(pin.Holding) error) error { return errUnbuilt }
