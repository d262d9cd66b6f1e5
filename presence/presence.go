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

// Shards divide the users; each is on one hash slot of the store.
const Shards = 16

// Shard is one of them.
type Shard int

// ShardOf never changes: nodes of two releases share a store.
func ShardOf(user string) Shard {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(user)) // never an error
	return Shard(sum.Sum32() % Shards)
}

// Timing is the same on all nodes.
type Timing struct {
	TTL       time.Duration // of a lease without heartbeats
	Heartbeat time.Duration // heartbeats: three fit into the TTL
	Sweep     time.Duration // of a shard, by whichever node
	Poll      time.Duration // of the log, while somebody watches
}

// Three such store calls in a row leave a lease alive.
func (t Timing) limit() time.Duration { return t.TTL / 5 }

// DefaultTiming is the binary's.
func DefaultTiming() Timing {
	return Timing{TTL: 15 * time.Second, Heartbeat: 5 * time.Second, Sweep: 2 * time.Second, Poll: 500 * time.Millisecond}
}

// Lease is one connection of a user.
type Lease struct {
	User  string
	Conn  string      // unique for the user; kept by who resumes
	Room  ring.RoomID // empty: in none
	Since time.Time   // by the store's clock
}

var errUnprintable = errors.New("a lease needs a user and a connection, and none of its names may have control characters")

// Validate refuses control characters, with which the store separates names.
func (l Lease) Validate() error {
	control := func(r rune) bool { return r < ' ' }
	if l.User == "" || l.Conn == "" || strings.ContainsFunc(l.User+l.Conn+string(l.Room), control) {
		return fmt.Errorf("%w: user %.60q", errUnprintable, l.User)
	}
	return nil
}

// State is of a user.
type State string

// The states. Unknown: the store does not answer, or lost its memory and has not heard from all nodes.
const (
	Online  State = "online"
	Offline State = "offline"
	Unknown State = "unknown"
)

// Status answers a question about a user.
type Status struct {
	User        string
	State       State
	Since       time.Time // online since
	LastSeen    time.Time // last heartbeat when offline; zero: forgotten
	Connections int
	Rooms       []ring.RoomID // no doubles
}

// Cursor is a place in one shard's log; the zero Cursor is in none.
type Cursor struct {
	Born    int64 // of the log
	Version int64 // changes before it
}

// Change is a user who came or left.
type Change struct {
	User   string
	Online bool
	At     time.Time // online since, or last seen
}

// Diff is a shard's changes since a cursor.
type Diff struct {
	Next    Cursor
	Changes []Change // oldest first
	Gap     bool     // the log does not reach back to the cursor
}

// LeaseStore keeps all nodes' leases. Calls may be repeated.
type LeaseStore interface {
	// Add writes leases that were not removed. A user's first is a join.
	Add(ctx context.Context, leases []Lease) error
	// Renew is a heartbeat. It returns leases that the store lacks.
	Renew(ctx context.Context, leases []Lease) (missing []Lease, err error)
	// Remove is for good: other nodes may still renew. A user's last is a leave.
	Remove(ctx context.Context, leases []Lease) error
	// Sweep removes lapsed leases.
	Sweep(ctx context.Context) error
}

// WatchStore answers questions about users. Beside an error, what is known is returned.
type WatchStore interface {
	Ask(ctx context.Context, users []string) ([]Status, error)
	// Follow reads on from cursors. Shards that did not answer are missing.
	Follow(ctx context.Context, from [Shards]Cursor) (map[Shard]Diff, error)
}
