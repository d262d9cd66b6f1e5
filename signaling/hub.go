package signaling

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/holdfast-rtc/holdfast/failover"
	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/internal/panics"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

// Hub has the rooms with sockets here, and each one's highest known pin. It forgets a room with its last session.
type Hub struct {
	placer Placer
	panics *panics.Guard
	log    *slog.Logger
	asks   singleflight.Group

	mu     sync.Mutex
	rooms  map[ring.RoomID]*localRoom
	byBoot map[pin.BootID]map[ring.RoomID]*localRoom
	stalls map[pin.BootID]map[*session]time.Time // by their rooms' pins: when it was last said

	windows map[pin.BootID]*window
	nodes   func() int // signaling nodes
}

type localRoom struct {
	pin      pin.Pin
	sessions map[*session]struct{}
	stays    string    // on a draining node
	live     pin.Fence // reached by a live move
	settled  pin.Fence // live, and everybody arrived
	knows    pin.Fence // the node was told everybody under it, or zero
}

var _ failover.Rooms = (*Hub)(nil)

func newHub(placer Placer, nodes func() int, guard *panics.Guard, log *slog.Logger) *Hub {
	return &Hub{
		placer: placer, nodes: nodes, panics: guard, log: log, rooms: make(map[ring.RoomID]*localRoom),
		byBoot: make(map[pin.BootID]map[ring.RoomID]*localRoom), stalls: make(map[pin.BootID]map[*session]time.Time), windows: make(map[pin.BootID]*window),
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
			if known := s.room.Load(); known != nil && known.People >= local.Expect.People {
				local.Expect = *known
			}
		}
		list = append(list, local)
	}
	return list
}

// Moved posts a new pin to the room's sessions, a window at a time, without blocking. It ignores a known fence.
func (h *Hub) Moved(_ context.Context, room ring.RoomID, to pin.Pin) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.move(room, to, h.log.Debug, "sessions sent to the room's new node")
}

// Delayed tells clients that no media node has headroom; other delays are short.
func (h *Hub) Delayed(room ring.RoomID, why error) {
	if !lacksHeadroom(why) {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if r := h.rooms[room]; r != nil {
		for s := range r.sessions {
			s.socket.send(faultOf(why))
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

// found is Moved for a pin that a session met. If a live move's node refused the room under a fence, the former one still has it.
func (h *Hub) found(room ring.RoomID, to pin.Pin, refused pin.Fence) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if r := h.rooms[room]; r != nil && !refused.IsZero() && r.live == refused && r.pin.Fence == refused {
		r.live = to.Fence
	}
	h.move(room, to, h.log.Info, "clients told to restart", "why", "found by a session")
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
		h.unstall(s, from.Boot) // of the former place
	}
	r.pin, r.stays = to, ""
	h.file(room, r)
	h.sendTo(room, r)
	say(what, append([]any{"room", room, "peers", len(r.sessions), "from", from.Node, "to", to.Node, "epoch", to.Fence.Epoch}, why...)...)
}

// post keeps the Latest pin. It needs h.mu.
func post(moves chan pin.Pin, p pin.Pin) {
	select {
	case <-moves:
	default:
	}
	moves <- p
}

// A session with the lower pin is told of the higher one.
func (h *Hub) enter(s *session, p pin.Pin) {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := h.rooms[s.who.Room]
	if r == nil {
		r = &localRoom{pin: p, sessions: make(map[*session]struct{})}
		h.rooms[s.who.Room] = r
		h.file(s.who.Room, r)
	}
	h.move(s.who.Room, p, h.log.Info, "clients told to restart", "why", "found by a session")
	r.sessions[s] = struct{}{}
	if p.Fence.Less(r.pin.Fence) {
		post(s.moves, r.pin)
	}
}

func (h *Hub) leave(s *session) {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := h.rooms[s.who.Room]
	if r == nil {
		return
	}
	delete(r.sessions, s)
	h.unstall(s, r.pin.Boot)
	h.unload(s, r.pin.Boot)
	if len(r.sessions) == 0 {
		delete(h.rooms, s.who.Room)
		h.unfile(s.who.Room, r)
	}
}

// introduce notes under which pin the node was told who is in the room, or zero.
func (h *Hub) introduce(room ring.RoomID, p pin.Pin) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if r := h.rooms[room]; r != nil {
		r.knows = p.Fence
	}
}

// With introduced, only one session tells p's node who is in the room.
func (h *Hub) introduced(room ring.RoomID, p pin.Pin) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := h.rooms[room]
	return r != nil && !p.Fence.IsZero() && r.knows == p.Fence
}

// Above the placer's own budget.
const askLimit = 3 * time.Second

// Callers for one room share an answer. waitlist.ErrDoor may come beside a pin.
func (h *Hub) place(ctx context.Context, room ring.RoomID, expect headroom.Room) (pin.Pin, error) {
	return h.ask(ctx, "place\x00"+string(room), func(ctx context.Context) (pin.Pin, error) {
		return h.placer.Place(ctx, room, expect)
	})
}

// Callers refused under one pin share an answer.
func (h *Hub) placeAgain(ctx context.Context, room ring.RoomID, refused pin.Pin, expect headroom.Room) (pin.Pin, error) {
	return h.ask(ctx, "again\x00"+refused.Encode()+"\x00"+string(room), func(ctx context.Context) (pin.Pin, error) {
		return h.placer.PlaceAgain(ctx, room, refused, expect)
	})
}

// The first caller's context does not end it: others wait too.
func (h *Hub) ask(ctx context.Context, key string, call func(context.Context) (pin.Pin, error)) (pin.Pin, error) {
	answer := h.asks.DoChan(key, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askLimit)
		defer cancel()
		var p pin.Pin
		var err error
		// singleflight would rethrow a panic in its own goroutine.
		if caught := panics.Catch(func() { p, err = call(ctx) }); caught != nil {
			h.panics.Report(h.log, caught, "a placement broke")
			return pin.Pin{}, errBroke
		}
		return p, err
	})
	select {
	case a := <-answer:
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
	h.move(room, to, h.log.Info, "clients told to move", "why", "both nodes live")
}

func (h *Hub) cameLive(room ring.RoomID, fence pin.Fence) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := h.rooms[room]
	return r != nil && r.live == fence
}

func (h *Hub) settle(room ring.RoomID, fence pin.Fence) {
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

func (h *Hub) has(room ring.RoomID) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.rooms[room] != nil
}

func (h *Hub) empty() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.rooms) == 0
}

// sendAway ends up to most sessions, only of boot's rooms if it is not empty.
func (h *Hub) sendAway(most int, boot pin.BootID) (sent int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	rooms := h.rooms
	if boot != "" {
		rooms = h.byBoot[boot]
	}
	for _, r := range rooms {
		for one := range r.sessions {
			if sent == most {
				return sent
			}
			one.socket.end(errCutOff)
			sent++
		}
	}
	return sent
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

// stalled notes that a client reported that no media arrives from its room's node.
func (h *Hub) stalled(s *session, epoch uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := h.rooms[s.who.Room]
	if r == nil || r.pin.Fence.Epoch != epoch {
		return
	}
	if _, here := r.sessions[s]; !here {
		return
	}
	if h.stalls[r.pin.Boot] == nil {
		h.stalls[r.pin.Boot] = make(map[*session]time.Time)
	}
	h.stalls[r.pin.Boot][s] = time.Now()
}

// unstall needs h.mu.
func (h *Hub) unstall(s *session, boot pin.BootID) {
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
	for _, r := range h.byBoot[boot] {
		all += len(r.sessions)
	}
	return stalled, all
}
