package signaling

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/internal/failpoint"
	"github.com/holdfast-rtc/holdfast/orchestrator"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

const (
	// Less than the former node goes on; more than the new one needs to report all arrivals.
	liveOverlap = 10 * time.Second
	// For each question of an ordered move.
	movePatience = 3 * time.Second
	moveBytes    = 1 << 10
)

// Codes of ordered moves.
const (
	codeUnknownRoom wire.Code = "unknown_room"
	codeMoveRefused wire.Code = "move_refused"
)

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

// handedOver follows a node's last word. A live move does not ask the store.
func (s *session) handedOver(ctx context.Context, said *control.Fenced) {
	to, err := said.GetPin().Value()
	if err != nil || !said.GetLive() || !s.pin.Fence.Less(to.Fence) {
		s.fenced(ctx, said.GetCurrent())
		return
	}
	s.server.parts.Placer.Observe(s.who.Room, to.Fence)
	s.server.hub.MovedLive(ctx, s.who.Room, to)
}

// setLinkAside keeps the link to the former node of a live move: chat lines that it took are in transit.
func (s *session) setLinkAside() {
	if s.link == nil {
		return
	}
	s.dropFormerLink()
	s.former, s.dropFormer = s.link, s.drop
	s.link, s.drop = nil, func() {}
}

func (s *session) dropFormerLink() {
	if s.former != nil {
		s.dropFormer()
		s.former.Close()
		s.former = nil
	}
}

// tellLate tells what the former node of a live move still says: of the chat only, since the new node says all else.
func (s *session) tellLate(event *control.PeerEvent, ok bool) {
	if !ok {
		s.dropFormerLink()
		return
	}
	line := event.GetChat()
	if line == nil {
		return
	}
	epoch := s.pin.Fence.Epoch
	if s.told != s.pin.Boot { // the client does not know of the move
		epoch = s.former.Pin.Fence.Epoch
	}
	s.socket.send(wireChat(line, epoch))
}

// migrated also tells the node of a live move: the former one serves until all came.
func (s *session) migrated(m *wire.Migrated) {
	if m.Epoch != s.pin.Fence.Epoch {
		return
	}
	s.server.hub.arrived(s, s.pin.Boot)
	s.logMigrated(m)
	node := s.server.parts.Views.View().Nodes[s.pin.Node]
	knows := node.Boot == s.pin.Boot && node.Can(control.CapabilityLiveMove) // an older node ends the stream over it
	if knows && (m.How == wire.HowLive || s.cameLive) {
		s.say(&control.PeerMessage{Message: &control.PeerMessage_Arrived{Arrived: &control.Arrived{}}})
	}
}

const (
	migratedLogs = 3 // of a session and epoch; more are bounded with those of others
	lostLogged   = 3
)

// migrations are those of an epoch that were told.
type migrations struct {
	epoch uint64
	told  int
}

func (s *session) logMigrated(m *wire.Migrated) {
	if s.migrations.epoch != m.Epoch {
		s.migrations = migrations{epoch: m.Epoch}
	}
	s.migrations.told++
	unlogged, ok := 0, true
	if s.migrations.told > migratedLogs {
		unlogged, ok = s.server.pathLogs.Next()
	}
	if ok {
		s.log.Info("client migrated", "how", m.How, "attempt", m.Attempt, "gap_ms", m.GapMs, "lost", len(m.Lost),
			"first_lost", m.Lost[:min(len(m.Lost), lostLogged)], "epoch", m.Epoch, "node", s.pin.Node, "unlogged", unlogged)
	}
}

type moveAnswer struct {
	Room  ring.RoomID `json:"room"`
	From  ring.NodeID `json:"from"`
	To    ring.NodeID `json:"to"`
	Epoch uint64      `json:"epoch"`
}

// serveMove moves a room to the named node, or the placer's choice.
func (s *Server) serveMove(w http.ResponseWriter, r *http.Request) {
	room, err := roomOf(r, "/move")
	var wanted struct {
		Node ring.NodeID `json:"node"`
	}
	if err == nil {
		decoder := json.NewDecoder(http.MaxBytesReader(nil, r.Body, moveBytes))
		decoder.DisallowUnknownFields()
		if err = decoder.Decode(&wanted); errors.Is(err, io.EOF) {
			err = nil
		} else if err != nil {
			err = fmt.Errorf("%w: the body is not {node?}: %w", wire.ErrMalformed, err)
		}
	}
	if err != nil {
		writeFault(w, err)
		return
	}
	answer, err := s.moveRoom(r.Context(), room, wanted.Node)
	switch target := new(orchestrator.TargetError); {
	case err == nil:
		writeJSON(w, http.StatusOK, answer)
	case errors.Is(err, orchestrator.ErrNoPin):
		writeJSON(w, http.StatusNotFound, restFault{Code: codeUnknownRoom, Message: fmt.Sprintf("No room named %s is open; `holdfast rooms` lists those that are.", room)})
	case errors.As(err, &target):
		writeJSON(w, http.StatusConflict, restFault{Code: codeMoveRefused, Message: sentenceOf(target) + " Name another node, or none; `holdfast nodes` lists them."})
	default:
		writeFault(w, err)
	}
}

// moveRoom returns once the clients here are told. After a crash, the compare-and-set decides, and the former owner finds out.
func (s *Server) moveRoom(ctx context.Context, room ring.RoomID, to ring.NodeID) (moveAnswer, error) {
	from, err := s.pinOf(ctx, room)
	if err != nil {
		return moveAnswer{}, err
	}
	next, err := s.parts.Placer.Move(ctx, room, from, to, s.costOf(ctx, room, from), pin.WhyOperator)
	if err != nil {
		return moveAnswer{}, err
	}
	if next.Boot != from.Boot {
		limited, cancel := context.WithTimeout(ctx, movePatience)
		_, err = s.parts.Pool.Outrank(limited, from.Control, room, next, true)
		cancel()
		if err != nil {
			s.log.Warn("node not told that its room has moved: its clients restart", "room", room, "node", from.Node, "error", err)
		}
		failpoint.Hit("move.after-outrank")
		s.hub.MovedLive(ctx, room, next)
		failpoint.Hit("move.after-tell")
	}
	s.log.Info("room moved by an operator", "room", room, "from", from.Node, "to", next.Node, "epoch", next.Fence.Epoch)
	return moveAnswer{Room: room, From: from.Node, To: next.Node, Epoch: next.Fence.Epoch}, nil
}

func (s *Server) pinOf(ctx context.Context, room ring.RoomID) (pin.Pin, error) {
	ctx, cancel := context.WithTimeout(ctx, movePatience)
	defer cancel()
	var found pin.Pin
	err := s.parts.Store.Pins(ctx, []ring.RoomID{room}, func(h pin.Holding) error {
		found = h.Pin
		return nil
	})
	switch {
	case err != nil:
		return pin.Pin{}, fmt.Errorf("%w: %w", orchestrator.ErrStoreUnavailable, err)
	case found.IsZero():
		return pin.Pin{}, orchestrator.ErrNoPin
	}
	return found, nil
}

// costOf asks the room's media node, so that the answer is the same at every signaling node. If it does not tell, the clients here do.
func (s *Server) costOf(ctx context.Context, room ring.RoomID, at pin.Pin) headroom.Room {
	held, err := s.heldAt(ctx, room, at)
	if err != nil {
		s.log.Debug("cost of a room not known", "room", room, "node", at.Node, "error", err)
	}
	if held.GetSize() != nil {
		return s.sizeOf(held.GetSize())
	}
	for _, local := range s.hub.PinnedTo(at.Boot) {
		if local.Room == room && local.Expect.People > 0 {
			return local.Expect
		}
	}
	return headroom.Expect(len(held.GetPeers()))
}

// heldAt is nil if the node does not have the room.
func (s *Server) heldAt(ctx context.Context, room ring.RoomID, at pin.Pin) (*control.HeldRoom, error) {
	ctx, cancel := context.WithTimeout(ctx, movePatience)
	defer cancel()
	client, err := s.parts.Pool.Client(at.Control)
	if err != nil {
		return nil, err
	}
	reply, err := client.Rooms(ctx, &control.RoomsRequest{})
	for _, held := range reply.GetRooms() {
		if held.GetRoom() == string(room) {
			return held, nil
		}
	}
	return nil, err
}

// sizeOf is the room as session.expect has it for the people of a token without a size.
func (s *Server) sizeOf(size *control.RoomSize) headroom.Room {
	room := headroom.Room{People: int(size.GetPeople()), Cameras: int(size.GetCameras()), Microphones: int(size.GetMicrophones()), Running: true}
	room = room.AtLeast(max(int(size.GetExpected()), s.config.ExpectedSize))
	if sent := size.GetEgress(); sent != nil {
		room.Measured, room.Sent = true, sent.Value()
	}
	return room
}
