package signaling

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/internal/backoff"
	"github.com/holdfast-rtc/holdfast/internal/failpoint"
	"github.com/holdfast-rtc/holdfast/internal/panics"
	"github.com/holdfast-rtc/holdfast/orchestrator"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/signaling/sfulink"
)

const (
	moderateLimit = 2 * time.Second
	againAfter    = 50 * time.Millisecond
)

var (
	errNotHere      = errors.New("that person is not in the room any more")
	errAskedAlready = errors.New("that person was asked a moment ago")
)

// moderateAt asks where the room is, again while it is on its way there.
func (s *Server) moderateAt(ctx context.Context, at pin.Pin, request *control.ModerateRequest) error {
	ctx, cancel := context.WithTimeout(ctx, moderateLimit)
	defer cancel()
	var reply *control.ModerateReply
	var err error
	for {
		var client control.MediaClient
		if client, err = s.parts.Pool.Client(at.Control); err == nil {
			reply, err = client.Moderate(ctx, request)
		}
		if !control.IsNotOpen(err) || !backoff.Sleep(ctx, againAfter) {
			break
		}
		at = s.hub.latest(ring.RoomID(request.GetRoom()), at)
	}
	switch {
	case err != nil:
		return errors.Join(sfulink.ErrUnreachable, err)
	case len(reply.GetDone()) == 0 && len(reply.GetTooSoon()) > 0:
		return errAskedAlready
	case len(reply.GetDone()) == 0 && request.GetPeer() != "":
		return errNotHere
	}
	return nil
}

func whyNobody(unreachable bool) error {
	if unreachable {
		return sfulink.ErrUnreachable
	}
	return errNotHere
}

type removedPeer struct {
	Peer string      `json:"peer"`
	Node ring.NodeID `json:"node"`
}

type removalAnswer struct {
	Removed     []removedPeer `json:"removed"`
	Unreachable []ring.NodeID `json:"unreachable"`
	// Else this node goes on trying.
	Recorded bool `json:"recorded"`
}

// The note comes first: a session between nodes reads it on arrival.
func (s *Server) removeAndNote(ctx context.Context, request *control.RemoveRequest) removalAnswer {
	room := ring.RoomID(request.GetRoom())
	first := s.endings.Removed(ctx, room, request.GetIdentity(), request.GetPeer())
	answer := s.removeEverywhere(ctx, request)
	second := s.endings.Removed(ctx, room, "", each(answer.Removed, func(p removedPeer) string { return p.Peer })...)
	answer.Recorded = first == nil && second == nil
	if len(answer.Removed) > 0 {
		s.log.Info("people removed from a room", "room", request.GetRoom(), "peers", len(answer.Removed))
	}
	return answer
}

func (s *Server) removeEverywhere(ctx context.Context, request *control.RemoveRequest) removalAnswer {
	removed, unreachable := askNodes(ctx, s, "remove", func(ctx context.Context, n cluster.Node, client control.MediaClient) ([]removedPeer, error) {
		reply, err := client.Remove(ctx, request)
		return each(reply.GetRemoved(), func(peer string) removedPeer { return removedPeer{Peer: peer, Node: n.ID} }), err
	})
	slices.SortFunc(removed, func(a, b removedPeer) int { return cmp.Or(cmp.Compare(a.Peer, b.Peer), cmp.Compare(a.Node, b.Node)) })
	return removalAnswer{Removed: removed, Unreachable: unreachable}
}

const (
	roomsPatience = 2 * time.Second
	roomsAtOnce   = 32
)

// askNodes asks every live media node, and also returns those that did not answer in roomsPatience.
func askNodes[T any](ctx context.Context, s *Server, what string, ask func(context.Context, cluster.Node, control.MediaClient) ([]T, error)) (answers []T, unreachable []ring.NodeID) {
	return askEach(ctx, s, what, slices.Collect(maps.Values(s.parts.Views.View().Nodes)), func(ctx context.Context, n cluster.Node) ([]T, error) {
		client, err := s.parts.Pool.Client(n.Control)
		if err != nil {
			return nil, err
		}
		return ask(ctx, n, client)
	})
}

func askEach[T any](ctx context.Context, s *Server, what string, nodes []cluster.Node, ask func(context.Context, cluster.Node) ([]T, error)) (answers []T, unreachable []ring.NodeID) {
	answers, unreachable = []T{}, []ring.NodeID{} // not null in JSON
	var (
		mu   sync.Mutex
		asks errgroup.Group
	)
	asks.SetLimit(roomsAtOnce)
	for _, n := range nodes {
		asks.Go(func() error {
			limited, cancel := context.WithTimeout(ctx, roomsPatience)
			defer cancel()
			var some []T
			err := s.borne(func() (err error) {
				some, err = ask(limited, n)
				return err
			})
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				s.log.Debug("node not asked", "node", n.ID, "what", what, "error", err)
				unreachable = append(unreachable, n.ID)
			}
			answers = append(answers, some...)
			return nil
		})
	}
	_ = asks.Wait()
	slices.Sort(unreachable)
	return answers, unreachable
}

func (s *Server) borne(ask func() error) (err error) {
	if caught := panics.Catch(func() { err = ask() }); caught != nil {
		s.panics.Report(s.log, caught, "a media node's reply broke its reading")
		return errBroke
	}
	return err
}

// For each question of an ordered move.
const movePatience = 3 * time.Second

type moveAnswer struct {
	Room  ring.RoomID `json:"room"`
	From  ring.NodeID `json:"from"`
	To    ring.NodeID `json:"to"`
	Epoch uint64      `json:"epoch"`
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

// staying also asks the other signaling nodes about their clients' rooms. It returns the nodes that did not answer too.
func (s *Server) staying(ctx context.Context, boot pin.BootID) ([]stayingRoom, []ring.NodeID) {
	var others []cluster.Node
	for _, n := range s.parts.Views.View().Signaling {
		if n.ID != s.config.Node {
			others = append(others, n)
		}
	}
	list, unreachable := askEach(ctx, s, "staying", others, func(ctx context.Context, n cluster.Node) ([]stayingRoom, error) {
		client, err := s.parts.Pool.Moves(n.Control)
		if err != nil {
			return nil, err
		}
		reply, err := client.Staying(ctx, &control.StayingRequest{Boot: string(boot)})
		return each(reply.GetRooms(), func(r *control.StayingRoom) stayingRoom {
			return stayingRoom{Room: ring.RoomID(r.GetRoom()), Reason: r.GetReason()}
		}), err
	})
	list = append(s.hub.staying(boot), list...)
	slices.SortStableFunc(list, func(a, b stayingRoom) int { return cmp.Compare(a.Room, b.Room) })
	return slices.CompactFunc(list, func(a, b stayingRoom) bool { return a.Room == b.Room }), unreachable
}
