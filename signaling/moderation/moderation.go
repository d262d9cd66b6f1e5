// Package moderation does on other nodes what a moderator or an operator orders: it mutes, removes and moves, and asks every media node who has
// a room.
//
// A moderator's order goes to the node of the room's pin, and again while the room is on its way there. A removal goes to every live media
// node, because the store's pin may be wrong; it is noted before and after, so that a session between two nodes reads it on arrival. Nodes
// that do not answer in time are named beside the answers. Begin with Moderation.
package moderation

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/failover"
	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/internal/backoff"
	"github.com/holdfast-rtc/holdfast/internal/panics"
	"github.com/holdfast-rtc/holdfast/people/presence"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/signaling/endings"
	"github.com/holdfast-rtc/holdfast/signaling/fault"
	"github.com/holdfast-rtc/holdfast/signaling/sfulink"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

const (
	moderateLimit = 2 * time.Second
	againAfter    = 50 * time.Millisecond
)

// Why an order did nothing.
var (
	ErrNotHere      = fault.Detailed(wire.CodeNotAllowed, "that person is not in the room any more", "")
	ErrAskedAlready = fault.New(wire.CodeTooManyMessages, "that person was asked a moment ago", "Wait for an answer.")
)

// Placer moves rooms; see orchestrator.Orchestrator.
type Placer interface {
	// Move moves a room off from, whose node lives, to the named node or the placer's choice.
	Move(ctx context.Context, room ring.RoomID, from pin.Pin, to ring.NodeID, expect headroom.Room, why string) (pin.Pin, error)
}

// Store has the pins; see redisstore.
type Store interface {
	Pins(ctx context.Context, rooms []ring.RoomID, visit func(pin.Holding) error) error
}

// Views gives the current view.
type Views interface {
	View() *cluster.View
}

// Rooms are those with sockets here.
type Rooms interface {
	// Latest is the room's pin as known here, or the given one.
	Latest(room ring.RoomID, known pin.Pin) pin.Pin
	MovedLive(ctx context.Context, room ring.RoomID, to pin.Pin)
	PinnedTo(boot pin.BootID) []failover.LocalRoom
	// Staying says why rooms of the boot cannot leave it.
	Staying(boot pin.BootID) map[ring.RoomID]string
}

// Presence ends leases; see presence.Tracker.
type Presence interface {
	RemoveLost(l presence.Lease)
}

// Deps is what Moderation needs.
type Deps struct {
	// Self is this signaling node.
	Self ring.NodeID
	// ExpectedSize is that of rooms whose tokens name none.
	ExpectedSize int

	Placer  Placer
	Store   Store
	Views   Views
	Pool    *control.Pool
	Rooms   Rooms
	Endings *endings.Endings
	// Presence has the leases of the removed, which their own signaling node may not be there to end.
	Presence Presence
	Panics   *panics.Guard
	Log      *slog.Logger
}

// Moderation does what is ordered at one signaling node. All methods may be called concurrently.
type Moderation struct{ deps Deps }

// New returns a Moderation.
func New(deps Deps) *Moderation { return &Moderation{deps: deps} }

// Moderate orders an act of the node that has the room, again while the room is on its way there. An order to one person returns ErrNotHere or
// ErrAskedAlready if it did nothing.
func (m *Moderation) Moderate(ctx context.Context, at pin.Pin, request *control.ModerateRequest) error {
	ctx, cancel := context.WithTimeout(ctx, moderateLimit)
	defer cancel()
	var reply *control.ModerateReply
	var err error
	for {
		var client control.MediaClient
		if client, err = m.deps.Pool.Client(at.Control); err == nil {
			reply, err = client.Moderate(ctx, request)
		}
		if !control.IsNotOpen(err) || !backoff.Sleep(ctx, againAfter) {
			break
		}
		at = m.deps.Rooms.Latest(ring.RoomID(request.GetRoom()), at)
	}
	switch {
	case err != nil:
		return errors.Join(sfulink.ErrUnreachable, err)
	case len(reply.GetDone()) == 0 && len(reply.GetTooSoon()) > 0:
		return ErrAskedAlready
	case len(reply.GetDone()) == 0 && request.GetPeer() != "":
		return ErrNotHere
	}
	return nil
}

// Moderated is a peer to whom an act was done.
type Moderated struct {
	RemovedPeer

	TooSoon bool `json:"tooSoon,omitempty"` // asked a moment ago
}

// ModerateEverywhere orders an act of every live media node.
func (m *Moderation) ModerateEverywhere(ctx context.Context, request *control.ModerateRequest) (done []Moderated, unreachable []ring.NodeID) {
	done, unreachable = AskNodes(ctx, m, "moderate", func(ctx context.Context, n cluster.Node, client control.MediaClient) (rows []Moderated, err error) {
		reply, err := client.Moderate(ctx, request)
		for _, peer := range reply.GetDone() {
			rows = append(rows, Moderated{RemovedPeer: RemovedPeer{Peer: peer, Node: n.ID}})
		}
		for _, peer := range reply.GetTooSoon() {
			rows = append(rows, Moderated{RemovedPeer: RemovedPeer{Peer: peer, Node: n.ID}, TooSoon: true})
		}
		return rows, err
	})
	slices.SortFunc(done, func(a, b Moderated) int { return cmp.Or(cmp.Compare(a.Peer, b.Peer), cmp.Compare(a.Node, b.Node)) })
	return done, unreachable
}

// RemovedPeer is a peer, and the node where it was.
type RemovedPeer struct {
	Peer string      `json:"peer"`
	Node ring.NodeID `json:"node"`
}

// Removal is what a removal did.
type Removal struct {
	Removed     []RemovedPeer `json:"removed"`
	Unreachable []ring.NodeID `json:"unreachable"`
	// Recorded is false while the store does not answer; this node then goes on trying.
	Recorded bool `json:"recorded"`
}

// Err says why nobody was removed. It is nil if somebody was.
func (r Removal) Err() error {
	switch {
	case len(r.Removed) > 0:
		return nil
	case len(r.Unreachable) > 0:
		return sfulink.ErrUnreachable
	default:
		return ErrNotHere
	}
}

// Remove ends a peer, or all sessions of an identity. The note comes first: a session between two nodes reads it on arrival.
func (m *Moderation) Remove(ctx context.Context, request *control.RemoveRequest) Removal {
	first := m.deps.Endings.Removed(ctx, ring.RoomID(request.GetRoom()), request.GetIdentity(), request.GetPeer())
	return m.finishRemoval(ctx, request, first)
}

// EndCall ends a room's call for everybody: those who are there, and by the note those who are on their way between two nodes, whose media
// node is dead, or who resume later. A later join opens the room anew. It returns orchestrator.ErrNoPin beside the Removal if the room is not open.
func (m *Moderation) EndCall(ctx context.Context, room ring.RoomID) (Removal, error) {
	_, open := m.Pin(ctx, room)
	first := m.deps.Endings.CallEnded(ctx, room)
	return m.finishRemoval(ctx, &control.RemoveRequest{Room: string(room), Everybody: true}, first), open
}

// finishRemoval removes people whose removal is noted, unless first says that it is not yet.
func (m *Moderation) finishRemoval(ctx context.Context, request *control.RemoveRequest, first error) Removal {
	room := ring.RoomID(request.GetRoom())
	answer := m.removeEverywhere(ctx, request)
	var peers []string
	for _, p := range answer.Removed {
		peers = append(peers, p.Peer)
	}
	second := m.deps.Endings.Removed(ctx, room, "", peers...)
	answer.Recorded = first == nil && second == nil
	if len(answer.Removed) > 0 {
		m.deps.Log.Info("people removed from a room", "room", request.GetRoom(), "peers", len(answer.Removed))
	}
	return answer
}

func (m *Moderation) removeEverywhere(ctx context.Context, request *control.RemoveRequest) Removal {
	removed, unreachable := AskNodes(ctx, m, "remove", func(ctx context.Context, n cluster.Node, client control.MediaClient) (rows []RemovedPeer, err error) {
		reply, err := client.Remove(ctx, request)
		for _, peer := range reply.GetRemoved() {
			rows = append(rows, RemovedPeer{Peer: peer, Node: n.ID})
		}
		// A media node of an earlier release names no identities.
		for i, identity := range reply.GetIdentities() {
			if i < len(rows) {
				m.deps.Presence.RemoveLost(presence.Lease{User: identity, Conn: rows[i].Peer, Room: ring.RoomID(request.GetRoom()), Since: time.Now()})
			}
		}
		return rows, err
	})
	slices.SortFunc(removed, func(a, b RemovedPeer) int { return cmp.Or(cmp.Compare(a.Peer, b.Peer), cmp.Compare(a.Node, b.Node)) })
	return Removal{Removed: removed, Unreachable: unreachable}
}
