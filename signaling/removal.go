package signaling

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/signaling/access"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

const (
	// Each question goes to every media node.
	roomAsksPerSecond = 5
	roomAskBurst      = 50
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

// The store's pin is not trusted: whoever holds the room is asked.
func (s *Server) serveRemoval(w http.ResponseWriter, r *http.Request) {
	request, err := s.removalOf(r)
	if err != nil {
		writeFault(w, err)
		return
	}
	// Noted first: a session that is moving is with no node, and reads the note on arrival.
	room, now := ring.RoomID(request.GetRoom()), s.parts.Store.Now()
	first := s.noteRemoval(r.Context(), removalFrom(room, request.GetIdentity(), request.GetPeer(), nil, now))
	answer := s.removeEverywhere(r.Context(), request)
	second := s.noteRemoval(r.Context(), removalFrom(room, "", "", answer.Removed, now))
	answer.Recorded = first == nil && second == nil
	status := http.StatusOK
	switch {
	case len(answer.Removed) > 0:
		s.log.Info("people removed from a room", "room", request.GetRoom(), "peers", len(answer.Removed))
	case len(answer.Unreachable) > 0:
		status = http.StatusServiceUnavailable // perhaps with one that did not answer
	default:
		status = http.StatusNotFound
	}
	writeJSON(w, status, answer)
}

func (s *Server) removalOf(r *http.Request) (*control.RemoveRequest, error) {
	grant, err := s.grantOf(r)
	if err != nil {
		return nil, err
	}
	query := r.URL.Query()
	room, err := access.CheckRoom(query.Get("room"))
	if err != nil {
		return nil, err
	}
	peer, identity := query.Get("peer"), query.Get("identity")
	if (peer == "") == (identity == "") || len(peer) > wire.MaxPeerIDBytes || len(identity) > access.MaxIdentityBytes {
		return nil, fmt.Errorf("%w: %w", wire.ErrMalformed, errWhom)
	}
	if err := s.mayAsk(grant, room); err != nil {
		return nil, err
	}
	return &control.RemoveRequest{Room: string(room), Peer: peer, Identity: identity}, nil
}

func (s *Server) mayAsk(grant access.Grant, room ring.RoomID) error {
	if err := grant.ForRoomAdmin(room); err != nil {
		return err
	}
	if !s.roomAsks.Allow(string(room)) {
		return errFlood
	}
	return nil
}

func (s *Server) removeEverywhere(ctx context.Context, request *control.RemoveRequest) removalAnswer {
	removed, unreachable := askNodes(ctx, s, "remove", func(ctx context.Context, n cluster.Node, client control.MediaClient) ([]removedPeer, error) {
		reply, err := client.Remove(ctx, request)
		return each(reply.GetRemoved(), func(peer string) removedPeer { return removedPeer{Peer: peer, Node: n.ID} }), err
	})
	slices.SortFunc(removed, func(a, b removedPeer) int { return cmp.Or(cmp.Compare(a.Peer, b.Peer), cmp.Compare(a.Node, b.Node)) })
	return removalAnswer{Removed: removed, Unreachable: unreachable}
}
