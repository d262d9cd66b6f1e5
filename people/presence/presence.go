// Package presence says who is online in the whole cluster. A Tracker keeps the leases of one signaling node's connections,
// and tells those who watch users of changes.
//
// It promises that a connection costs a map entry and no timer, that a heartbeat of all connections is one call of the
// store, and that a watcher is told each change once, several in one message. It knows neither sockets nor Redis.
package presence

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"strings"
	"time"

	"github.com/holdfast-rtc/holdfast/ring"
)

// Shards are of users, each on one hash slot.
const Shards = 16

// Shard is one of them.
type Shard int

// ShardOf is the same in all releases.
func ShardOf(user string) Shard {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(user))
	return Shard(sum.Sum32() % Shards)
}

// Timing is the same on all nodes.
type Timing struct {
	TTL       time.Duration // of a lease
	Heartbeat time.Duration // three in a TTL
	Sweep     time.Duration // of a shard
	Poll      time.Duration // of the log
}

// Three such store calls leave a lease alive.
func (t Timing) limit() time.Duration { return t.TTL / 5 }

// DefaultTiming is the binary's.
func DefaultTiming() Timing {
	return Timing{TTL: 15 * time.Second, Heartbeat: 5 * time.Second, Sweep: 2 * time.Second, Poll: 500 * time.Millisecond}
}

// Lease is one connection of a user.
type Lease struct {
	User  string
	Conn  string      // unique for the user
	Room  ring.RoomID // empty: in none
	Since time.Time   // by the store's clock
}

var errUnprintable = errors.New("a lease needs a user and a connection, and none of its names may have control characters")

// Validate refuses control characters.
func (l Lease) Validate() error {
	control := func(r rune) bool { return r < ' ' }
	if l.User == "" || l.Conn == "" || strings.ContainsFunc(l.User+l.Conn+string(l.Room), control) {
		return fmt.Errorf("%w: user %.60q", errUnprintable, l.User)
	}
	return nil
}

// State is of a user.
type State string

// Unknown: the store is silent, or has lost its memory.
const (
	Online  State = "online"
	Offline State = "offline"
	Unknown State = "unknown"
)

// Status is of a user.
type Status struct {
	User        string
	State       State
	Since       time.Time
	LastSeen    time.Time // when offline; zero: unknown
	Connections int
	Rooms       []ring.RoomID // distinct
}

// Cursor is a place in a shard's log; zero: none.
type Cursor struct {
	Born    int64 // of the log
	Version int64
}

// Change is a join or leave.
type Change struct {
	User   string
	Online bool
	At     time.Time
}

// Diff is a shard's changes since a cursor.
type Diff struct {
	Next    Cursor
	Changes []Change // oldest first
	Gap     bool     // changes are missing
}

// LeaseStore keeps all nodes' leases. Calls may be repeated.
type LeaseStore interface {
	// Add writes leases that were not removed. A user's first is a join.
	Add(ctx context.Context, leases []Lease) error
	// Renew returns leases that the store lacks.
	Renew(ctx context.Context, leases []Lease) (missing []Lease, err error)
	// Remove is for good, even if others renew. A user's last is a leave.
	Remove(ctx context.Context, leases []Lease) error
	// Sweep removes lapsed leases.
	Sweep(ctx context.Context) error
}

// WatchStore answers about users. Known results come beside an error.
type WatchStore interface {
	Ask(ctx context.Context, users []string) ([]Status, error)
	// Follow leaves out shards that did not answer.
	Follow(ctx context.Context, from [Shards]Cursor) (map[Shard]Diff, error)
}
