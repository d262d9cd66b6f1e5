// Package hub has the rooms with sockets at this signaling node, and each one's highest known pin.
//
// Failover tells it by Moved which rooms have a new pin. It passes the pin on to the room's sessions, a window at a time, so that the new
// node is not swamped. Callers that place a room at the same time share one answer. The hub forgets a room with its last session. Begin
// with Hub.
package hub

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/holdfast-rtc/holdfast/failover"
	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/internal/panics"
	"github.com/holdfast-rtc/holdfast/internal/traces"
	"github.com/holdfast-rtc/holdfast/orchestrator"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

// Session is what the hub sees of a client. The hub calls its methods under a lock, so none may block or call the hub.
type Session interface {
	Room() ring.RoomID
	// Load is the room as the session knows it, or nil.
	Load() *headroom.Room
	// Shown says that the others see the client's camera or screen.
	Shown() bool
	// Move posts the room's new pin. A later pin replaces one that was not taken yet.
	Move(to pin.Pin)
	// BranchDied posts that a branch of the room is dead.
	BranchDied(boot pin.BootID)
	// End closes the socket; the client may come back elsewhere.
	End(why error)
	// Tell sends a fault to the client.
	Tell(why error)
}

// Placer says where rooms live; see orchestrator.Orchestrator.
type Placer interface {
	// Place returns or makes the room's pin, with waitlist.ErrDoor if the room has a door.
	Place(ctx context.Context, room ring.RoomID, expect headroom.Room) (pin.Pin, error)
	// PlaceAgain moves a room that its node refused.
	PlaceAgain(ctx context.Context, room ring.RoomID, refused pin.Pin, expect headroom.Room) (pin.Pin, error)
}

// Store has the pins; see redisstore.
type Store interface {
	Pins(ctx context.Context, rooms []ring.RoomID, visit func(pin.Holding) error) error
}

// Deps is what a Hub needs.
type Deps struct {
	Placer Placer
	Store  Store
	// Nodes counts the signaling nodes, this one included.
	Nodes  func() int
	Panics *panics.Guard
	Log    *slog.Logger
}

// Hub is one signaling node's. All methods may be called concurrently.
type Hub struct {
	deps Deps
	asks singleflight.Group

	mu     sync.Mutex
	rooms  map[ring.RoomID]*localRoom                // guarded by mu
	byBoot map[pin.BootID]map[ring.RoomID]*localRoom // guarded by mu
	// stalls are by the boot that has the session's media, with the time of the last report.
	stalls   map[pin.BootID]map[Session]time.Time // guarded by mu
	windows  map[pin.BootID]*window               // guarded by mu
	branches branches                             // guarded by mu
	// standbys are the sessions whose room's connections a boot can go on with.
	standbys branches // guarded by mu
	// whole are those whose room's connections can all go on there.
	whole branches // guarded by mu
}

// localRoom is a room with sockets here. The hub's lock guards it.
type localRoom struct {
	pin      pin.Pin
	sessions map[Session]struct{}
	// stays says why the room cannot leave its draining node, or is empty.
	stays string
	// live is the fence to which a live move led; settled is the one at whose node everybody has arrived.
	live    pin.Fence
	settled pin.Fence
	// knows is the fence under which the node was told who is in the room, or zero.
	knows pin.Fence
}

var _ failover.Rooms = (*Hub)(nil)

// New returns a Hub that needs Run.
func New(deps Deps) *Hub {
	return &Hub{
		deps: deps, rooms: make(map[ring.RoomID]*localRoom), byBoot: make(map[pin.BootID]map[ring.RoomID]*localRoom),
		stalls: make(map[pin.BootID]map[Session]time.Time), windows: make(map[pin.BootID]*window),
		branches: newBranches(), standbys: newBranches(), whole: newBranches(),
	}
}

// file and unfile need h.mu.
func (h *Hub) file(room ring.RoomID, r *localRoom) {
	if h.byBoot[r.pin.Boot] == nil {
		h.byBoot[r.pin.Boot] = make(map[ring.RoomID]*localRoom)
	}
	h.byBoot[r.pin.Boot][room] = r
}

func (h *Hub) unfile(room ring.RoomID, r *localRoom) {
	delete(h.byBoot[r.pin.Boot], room)
	if len(h.byBoot[r.pin.Boot]) == 0 {
		delete(h.byBoot, r.pin.Boot)
	}
}

// PinnedTo implements failover.Rooms.
func (h *Hub) PinnedTo(boot pin.BootID) []failover.LocalRoom {
	h.mu.Lock()
	defer h.mu.Unlock()
	var list []failover.LocalRoom
	for id, r := range h.byBoot[boot] {
		local := failover.LocalRoom{Room: id, Pin: r.pin, Peers: len(r.sessions)}
		for s := range r.sessions {
			_, atBranch := h.branches.of[s]
			local.Spread = local.Spread || atBranch
			if known := s.Load(); known != nil && known.People >= local.Expect.People {
				local.Expect = *known
			}
		}
		local.WholeAt = h.wholeAt(r)
		list = append(list, local)
	}
	return list
}

// Moved posts a new pin to the room's sessions, a window at a time, without blocking. It ignores a known fence.
func (h *Hub) Moved(_ context.Context, room ring.RoomID, to pin.Pin) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.move(room, to, h.deps.Log.Debug, "sessions sent to the room's new node")
}

// Delayed tells clients that no media node has headroom; other delays are short.
func (h *Hub) Delayed(room ring.RoomID, why error) {
	if _, full := errors.AsType[*orchestrator.NoHeadroomError](why); !full {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if r := h.rooms[room]; r != nil {
		for s := range r.sessions {
			s.Tell(why)
		}
	}
}

// Latest is the room's pin as known here, or the given one.
func (h *Hub) Latest(room ring.RoomID, known pin.Pin) pin.Pin {
	h.mu.Lock()
	defer h.mu.Unlock()
	if r := h.rooms[room]; r != nil && known.Fence.Less(r.pin.Fence) {
		return r.pin
	}
	return known
}

// Found is Moved for a pin that a session met. If the node of a live move refused the room under a fence, the former node still has it.
func (h *Hub) Found(room ring.RoomID, to pin.Pin, refused pin.Fence) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if r := h.rooms[room]; r != nil && !refused.IsZero() && r.live == refused && r.pin.Fence == refused {
		r.live = to.Fence
	}
	h.move(room, to, h.deps.Log.Info, "clients told to restart", "why", "found by a session")
}

// move needs h.mu.
func (h *Hub) move(room ring.RoomID, to pin.Pin, say func(string, ...any), what string, why ...any) {
	r := h.rooms[room]
	if r == nil || !r.pin.Fence.Less(to.Fence) {
		return
	}
	from := r.pin
	h.unfile(room, r)
	for s := range r.sessions {
		h.unstall(s, h.mediaOf(s, from)) // of the former place
	}
	r.pin, r.stays = to, ""
	h.file(room, r)
	h.sendTo(room, r)
	say(what, append([]any{"room", room, "peers", len(r.sessions), "from", from.Node, "to", to.Node, "epoch", to.Fence.Epoch}, why...)...)
}

// Enter adds a session that is attached under the pin. Whoever has a lower pin than the other side is told of the higher one.
func (h *Hub) Enter(s Session, p pin.Pin) {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := h.rooms[s.Room()]
	if r == nil {
		r = &localRoom{pin: p, sessions: make(map[Session]struct{})}
		h.rooms[s.Room()] = r
		h.file(s.Room(), r)
	}
	h.move(s.Room(), p, h.deps.Log.Info, "clients told to restart", "why", "found by a session")
	r.sessions[s] = struct{}{}
	if p.Fence.Less(r.pin.Fence) {
		s.Move(r.pin)
	}
}

// Leave removes a session. It may be called without Enter.
func (h *Hub) Leave(s Session) {
	h.mu.Lock()
	defer h.mu.Unlock()
	defer h.branches.set(s, "")
	defer h.standbys.set(s, "")
	defer h.whole.set(s, "")
	r := h.rooms[s.Room()]
	if r == nil {
		return
	}
	delete(r.sessions, s)
	h.unstall(s, h.mediaOf(s, r.pin))
	h.unload(s, r.pin.Boot)
	if len(r.sessions) == 0 {
		delete(h.rooms, s.Room())
		h.unfile(s.Room(), r)
	}
}

// Introduce notes under which pin a node was told who is in the room; the zero pin says that no node knows.
func (h *Hub) Introduce(room ring.RoomID, p pin.Pin) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if r := h.rooms[room]; r != nil {
		r.knows = p.Fence
	}
}

// Introduced reports whether the pin's node was told who is in the room, so that only one session tells it.
func (h *Hub) Introduced(room ring.RoomID, p pin.Pin) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := h.rooms[room]
	return r != nil && !p.Fence.IsZero() && r.knows == p.Fence
}

var errBroke = errors.New("this signaling node broke while it placed the room")

// AskLimit bounds a question about where a room is. It is above the placer's own budget.
const AskLimit = 3 * time.Second

// Place asks for the room's pin. Callers for one room share an answer. waitlist.ErrDoor may come beside a pin.
func (h *Hub) Place(ctx context.Context, room ring.RoomID, expect headroom.Room) (pin.Pin, error) {
	return h.ask(ctx, "place\x00"+string(room), func(ctx context.Context) (pin.Pin, error) {
		return h.deps.Placer.Place(ctx, room, expect)
	})
}

// PlaceAgain asks for another pin. Callers that were refused under one pin share an answer.
func (h *Hub) PlaceAgain(ctx context.Context, room ring.RoomID, refused pin.Pin, expect headroom.Room) (pin.Pin, error) {
	return h.ask(ctx, "again\x00"+refused.Encode()+"\x00"+string(room), func(ctx context.Context) (pin.Pin, error) {
		return h.deps.Placer.PlaceAgain(ctx, room, refused, expect)
	})
}

// The first caller's context does not end it: others wait too.
func (h *Hub) ask(ctx context.Context, key string, call func(context.Context) (pin.Pin, error)) (found pin.Pin, err error) {
	ctx, span := traces.Start(ctx, "find room")
	defer func() { span.Set("node", string(found.Node)).End(err) }()
	answer := h.asks.DoChan(key, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), AskLimit)
		defer cancel()
		var p pin.Pin
		var err error
		// singleflight would rethrow a panic in its own goroutine.
		if caught := panics.Catch(func() { p, err = call(ctx) }); caught != nil {
			h.deps.Panics.Report(h.deps.Log, caught, "a placement broke")
			return pin.Pin{}, errBroke
		}
		return p, err
	})
	select {
	case a := <-answer:
		if a.Shared {
			// The steps of the answer are in the trace of whoever asked first.
			span.Set("shared", "yes")
		}
		p, _ := a.Val.(pin.Pin)
		return p, a.Err
	case <-ctx.Done():
		return pin.Pin{}, ctx.Err()
	}
}

// Stays notes why a room cannot leave a draining node, or "".
func (h *Hub) Stays(room ring.RoomID, why string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if r := h.rooms[room]; r != nil {
		r.stays = why
	}
}

// Staying says why rooms of the boot cannot leave it.
func (h *Hub) Staying(boot pin.BootID) map[ring.RoomID]string {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := map[ring.RoomID]string{}
	for id, r := range h.byBoot[boot] {
		if r.stays != "" {
			list[id] = r.stays
		}
	}
	return list
}

// MovedLive is Moved while the former node lives: clients connect to the new one before they leave it.
func (h *Hub) MovedLive(_ context.Context, room ring.RoomID, to pin.Pin) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if r := h.rooms[room]; r != nil && r.pin.Fence.Less(to.Fence) {
		r.live = to.Fence
	}
	h.move(room, to, h.deps.Log.Info, "clients told to move", "why", "both nodes live")
}

// CameLive reports whether a live move led to the fence.
func (h *Hub) CameLive(room ring.RoomID, fence pin.Fence) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := h.rooms[room]
	return r != nil && r.live == fence
}

// Settle notes that everybody has arrived at the node of a live move.
func (h *Hub) Settle(room ring.RoomID, fence pin.Fence) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if r := h.rooms[room]; r != nil {
		r.settled = fence
	}
}

// Settled implements failover.Rooms. A room elsewhere needs no waiting.
func (h *Hub) Settled(room ring.RoomID, fence pin.Fence) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := h.rooms[room]
	return r == nil || r.pin.Fence != fence || r.settled == fence
}

// Has reports whether the room has a session here.
func (h *Hub) Has(room ring.RoomID) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.rooms[room] != nil
}

// People counts the room's sessions here.
func (h *Hub) People(room ring.RoomID) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	if r := h.rooms[room]; r != nil {
		return len(r.sessions)
	}
	return 0
}

// Empty reports whether no room has a session here.
func (h *Hub) Empty() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.rooms) == 0
}

// SendAway ends up to most sessions, only those whose media is at the boot if it is not empty.
func (h *Hub) SendAway(most int, boot pin.BootID, why error) (sent int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	sessions := h.fedBy(boot)
	if boot == "" {
		sessions = h.all
	}
	for one := range sessions {
		if sent == most {
			return sent
		}
		one.End(why)
		sent++
	}
	return sent
}

// all is an iterator, and needs h.mu.
func (h *Hub) all(yield func(Session) bool) {
	for _, r := range h.rooms {
		for s := range r.sessions {
			if !yield(s) {
				return
			}
		}
	}
}

func (h *Hub) pins() map[ring.RoomID]pin.Pin {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := make(map[ring.RoomID]pin.Pin, len(h.rooms))
	for room, r := range h.rooms {
		all[room] = r.pin
	}
	return all
}

// Clients repeat it once a second.
const stallLasts = 3 * time.Second

// ReportStall notes that a client gets no media.
func (h *Hub) ReportStall(s Session, epoch uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := h.rooms[s.Room()]
	if r == nil || r.pin.Fence.Epoch != epoch {
		return
	}
	if _, here := r.sessions[s]; !here {
		return
	}
	boot := h.mediaOf(s, r.pin)
	if h.stalls[boot] == nil {
		h.stalls[boot] = make(map[Session]time.Time)
	}
	h.stalls[boot][s] = time.Now()
}

// unstall needs h.mu.
func (h *Hub) unstall(s Session, boot pin.BootID) {
	delete(h.stalls[boot], s)
	if len(h.stalls[boot]) == 0 {
		delete(h.stalls, boot)
	}
}

// Stalled is part of failover.Rooms. It costs nothing for the stalls of other nodes: the detector asks about each node many times a second.
func (h *Hub) Stalled(boot pin.BootID) (stalled, all int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for s, at := range h.stalls[boot] {
		if time.Since(at) >= stallLasts {
			h.unstall(s, boot)
		} else {
			stalled++
		}
	}
	if stalled == 0 {
		return 0, 0
	}
	for range h.fedBy(boot) {
		all++
	}
	return stalled, all
}
