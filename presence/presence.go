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

// Shards is how many parts the users are divided into, each on one hash slot of the store.
const Shards = 16

// Shard is one of them.
type Shard int

// ShardOf never changes: nodes of two releases share a store.
func ShardOf(user string) Shard {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(user)) // never an error
	return Shard(sum.Sum32() % Shards)
}

// Timing is the same on all nodes of a cluster.
type Timing struct {
	TTL   time.Duration // a lease without a heartbeat lapses
	Beat  time.Duration // between heartbeats: three fit into the TTL
	Sweep time.Duration // between sweeps of a shard, by whichever node
	Poll  time.Duration // between readings of the log, while somebody watches
}

// limit is of one call of the store: three such in a row still leave a lease alive.
func (t Timing) limit() time.Duration { return t.TTL / 5 }

// DefaultTiming is what the binary uses.
func DefaultTiming() Timing {
	return Timing{TTL: 15 * time.Second, Beat: 5 * time.Second, Sweep: 2 * time.Second, Poll: 500 * time.Millisecond}
}

// Lease is one connection of a user. Who has several is one user.
type Lease struct {
	User  string
	Conn  string      // unique for the user; who resumes keeps it
	Room  ring.RoomID // empty in no room
	Since time.Time   // by the store's clock
}

var errUnprintable = errors.New("a lease needs a user and a connection, and none of its names may have control characters")

// Validate refuses names that a store cannot keep apart: it puts control characters between them.
func (l Lease) Validate() error {
	control := func(r rune) bool { return r < ' ' }
	if l.User == "" || l.Conn == "" || strings.ContainsFunc(l.User+l.Conn+string(l.Room), control) {
		return fmt.Errorf("%w: user %.60q", errUnprintable, l.User)
	}
	return nil
}

// State is what is known of a user.
type State string

// The states. Unknown: the store does not answer, or has lost its memory and not yet heard from all nodes.
const (
	Online  State = "online"
	Offline State = "offline"
	Unknown State = "unknown"
)

// Status is the answer to a question about a user.
type Status struct {
	User        string
	State       State
	Since       time.Time // online since
	LastSeen    time.Time // the last heartbeat of who is offline; zero when forgotten
	Connections int
	Rooms       []ring.RoomID // without doubles
}

// Cursor is a place in the log of one shard. The zero Cursor is in none.
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

// Diff is what happened in a shard since a cursor.
type Diff struct {
	Next    Cursor
	Changes []Change // oldest first
	Gap     bool     // the log does not reach back to the cursor
}

// LeaseStore keeps the leases of all nodes. Calls may be repeated.
type LeaseStore interface {
	// Add writes leases, but those that were removed. The first one of a user is a join.
	Add(ctx context.Context, leases []Lease) error
	// Renew is a heartbeat. It returns the leases that the store does not have.
	Renew(ctx context.Context, leases []Lease) (missing []Lease, err error)
	// Remove takes leases out for good: another node may still send heartbeats for them. The last one of a user is a leave.
	Remove(ctx context.Context, leases []Lease) error
	// Sweep takes out what has lapsed.
	Sweep(ctx context.Context) error
}

// WatchStore answers questions about users. Beside an error, what is known is returned.
type WatchStore interface {
	Ask(ctx context.Context, users []string) ([]Status, error)
	// Follow reads on from cursors. Shards that did not answer are missing.
	Follow(ctx context.Context, from [Shards]Cursor) (map[Shard]Diff, error)
}
