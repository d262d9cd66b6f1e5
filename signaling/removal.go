package signaling

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/internal/backoff"
	"github.com/holdfast-rtc/holdfast/orchestrator"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/signaling/access"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

const (
	takeOutFirst = 100 * time.Millisecond
	takeOutLimit = 5 * time.Second // a death, and a move
)

var errWhom = errors.New("name one peer or one identity")

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

// All nodes are asked: the store's pin may be wrong.
func (s *Server) serveRemoval(w http.ResponseWriter, r *http.Request) {
	request, err := s.removalOf(r)
	if err != nil {
		writeFault(w, err)
		return
	}
	answer := s.removeAndNote(r.Context(), request)
	writeJSON(w, statusOf(len(answer.Removed), answer.Unreachable), answer)
}

// The note comes first: a session between nodes reads it on arrival.
func (s *Server) removeAndNote(ctx context.Context, request *control.RemoveRequest) removalAnswer {
	room, now := ring.RoomID(request.GetRoom()), s.parts.Store.Now()
	first := s.noteRemoval(ctx, removalFrom(room, request.GetIdentity(), request.GetPeer(), nil, now))
	answer := s.removeEverywhere(ctx, request)
	second := s.noteRemoval(ctx, removalFrom(room, "", "", answer.Removed, now))
	answer.Recorded = first == nil && second == nil
	if len(answer.Removed) > 0 {
		s.log.Info("people removed from a room", "room", request.GetRoom(), "peers", len(answer.Removed))
	}
	return answer
}

func statusOf(found int, unreachable []ring.NodeID) int {
	switch {
	case found > 0:
		return http.StatusOK
	case len(unreachable) > 0:
		return http.StatusServiceUnavailable // perhaps on a silent node
	default:
		return http.StatusNotFound
	}
}

func (s *Server) removalOf(r *http.Request) (*control.RemoveRequest, error) {
	_, whom, err := s.whomOf(r)
	if err == nil && whom.Peer == "" && whom.Identity == "" {
		err = fmt.Errorf("%w: %w", wire.ErrMalformed, errWhom)
	}
	if err != nil {
		return nil, err
	}
	return &control.RemoveRequest{Room: string(whom.Room), Peer: whom.Peer, Identity: whom.Identity}, nil
}

// people are one peer, an identity's, or all of a room.
type people struct {
	Room           ring.RoomID
	Peer, Identity string
}

func (s *Server) whomOf(r *http.Request) (access.Grant, people, error) {
	grant, err := s.grantOf(r)
	if err != nil {
		return grant, people{}, err
	}
	query := r.URL.Query()
	room, err := access.CheckRoom(query.Get("room"))
	if err != nil {
		return grant, people{}, err
	}
	whom := people{Room: room, Peer: query.Get("peer"), Identity: query.Get("identity")}
	if whom.Peer != "" && whom.Identity != "" || len(whom.Peer) > wire.MaxPeerIDBytes || len(whom.Identity) > access.MaxIdentityBytes {
		return grant, whom, fmt.Errorf("%w: %w", wire.ErrMalformed, errWhom)
	}
	return grant, whom, s.mayAsk(grant, room)
}

func (s *Server) mayAsk(grant access.Grant, room ring.RoomID) error {
	if err := grant.ForRoomAdmin(room); err != nil {
		return err
	}
	if !s.limits.AskAboutRoom(room) {
		return errFlood
	}
	return nil
}

// takeOut tells the room's node of who left without a link: the others' sessions have it expect everybody.
func (s *session) takeOut(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, takeOutLimit)
	defer cancel()
	at, request := s.pin, &control.RemoveRequest{Room: string(s.who.Room), Peer: s.who.Peer}
	for wait := (backoff.Backoff{First: takeOutFirst, Most: time.Second}); ; {
		if p, err := s.server.pinOf(ctx, s.who.Room); err == nil {
			at = p
		} else if errors.Is(err, orchestrator.ErrNoPin) {
			return
		}
		if s.takenOut(ctx, at, request) || !backoff.Sleep(ctx, wait.Next()) {
			return
		}
	}
}

func (s *session) takenOut(ctx context.Context, at pin.Pin, request *control.RemoveRequest) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Second) // the node may be dead
	defer cancel()
	client, err := s.server.parts.Pool.Client(at.Control)
	if err != nil {
		return false
	}
	reply, err := client.Remove(ctx, request)
	return err == nil && len(reply.GetRemoved()) > 0
}

func (s *Server) removeEverywhere(ctx context.Context, request *control.RemoveRequest) removalAnswer {
	removed, unreachable := askNodes(ctx, s, "remove", func(ctx context.Context, n cluster.Node, client control.MediaClient) ([]removedPeer, error) {
		reply, err := client.Remove(ctx, request)
		return each(reply.GetRemoved(), func(peer string) removedPeer { return removedPeer{Peer: peer, Node: n.ID} }), err
	})
	slices.SortFunc(removed, func(a, b removedPeer) int { return cmp.Or(cmp.Compare(a.Peer, b.Peer), cmp.Compare(a.Node, b.Node)) })
	return removalAnswer{Removed: removed, Unreachable: unreachable}
}
