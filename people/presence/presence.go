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

// Shards is the number of shards into which users are divided. Each shard lies on one hash slot of the store.
const Shards = 16

// Shard is the number of a shard, from 0.
type Shard int

// ShardOf returns a user's shard. It must be the same in all releases.
func ShardOf(user string) Shard {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(user))
	return Shard(sum.Sum32() % Shards)
}

// Timing must be the same on all nodes.
type Timing struct {
	// TTL is how long a lease lives without a heartbeat.
	TTL time.Duration
	// Heartbeat is the time between two heartbeats. Three fit into a TTL.
	Heartbeat time.Duration
	// Sweep is the time between two searches for lapsed leases.
	Sweep time.Duration
	// Poll is the time between two reads of the log.
	Poll time.Duration
}

// limit bounds one call of the store. Three calls that reach it leave a lease alive.
func (t Timing) limit() time.Duration { return t.TTL / 5 }

// DefaultTiming has the values of the binary.
func DefaultTiming() Timing {
	return Timing{TTL: 15 * time.Second, Heartbeat: 5 * time.Second, Sweep: 2 * time.Second, Poll: 500 * time.Millisecond}
}

// Lease is one connection of a user.
type Lease struct {
	User string
	// Conn is unique for the user.
	Conn string
	// Room is empty if the connection is in no room.
	Room ring.RoomID
	// Since is by the store's clock.
	Since time.Time
}

var errUnprintable = errors.New("a lease needs a user and a connection, and none of its names may have control characters")

// Validate refuses control characters, which separate fields in the store.
func (l Lease) Validate() error {
	control := func(r rune) bool { return r < ' ' }
	if l.User == "" || l.Conn == "" || strings.ContainsFunc(l.User+l.Conn+string(l.Room), control) {
		return fmt.Errorf("%w: user %.60q", errUnprintable, l.User)
	}
	return nil
}

// State says whether a user is online.
type State string

// Unknown means that the store is silent or has lost its data.
const (
	Online  State = "online"
	Offline State = "offline"
	Unknown State = "unknown"
)

// Status is the presence of one user.
type Status struct {
	User  string
	State State
	Since time.Time
	// LastSeen is set for an offline user. It is zero if unknown.
	LastSeen    time.Time
	Connections int
	// Rooms has each room once.
	Rooms []ring.RoomID
}

// Cursor is a place in a shard's log. The zero Cursor is no place.
type Cursor struct {
	// Born tells logs apart that the store has lost and begun anew.
	Born    int64
	Version int64
}

// Change says that a user came online or went offline.
type Change struct {
	User   string
	Online bool
	At     time.Time
}

// Diff has the changes of a shard since a cursor.
type Diff struct {
	Next Cursor
	// The oldest change is first.
	Changes []Change
	// Gap means that some changes since the cursor are missing.
	Gap bool
}

// LeaseStore keeps the leases of all nodes. Each call may be repeated.
type LeaseStore interface {
	// Add writes the leases, except those that were removed. A user's first lease is a join.
	Add(ctx context.Context, leases []Lease) error
	// Renew prolongs the leases, and returns those that the store lacks.
	Renew(ctx context.Context, leases []Lease) (missing []Lease, err error)
	// Remove ends the leases for good, even if another node renews them. A user's last lease is a leave.
	Remove(ctx context.Context, leases []Lease) error
	// Sweep removes the lapsed leases.
	Sweep(ctx context.Context) error
}

// WatchStore answers questions about users. The known part of an answer may come together with an error.
type WatchStore interface {
	Ask(ctx context.Context, users []string) ([]Status, error)
	// Follow returns the changes of each shard since its cursor. It leaves out the shards that did not answer.
	Follow(ctx context.Context, from [Shards]Cursor) (map[Shard]Diff, error)
}
