package signaling

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/signaling/access"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

const (
	// removalsPerSecond and removalBurst bound, for each room, how often the nodes are asked to remove somebody, and what is noted of it.
	removalsPerSecond = 5
	removalBurst      = 50
)

// errWhom says that a removal does not say whom it means.
var errWhom = errors.New("name one peer or one identity")

// removedPeer is somebody who was removed, and the node that did it.
type removedPeer struct {
	Peer string      `json:"peer"`
	Node ring.NodeID `json:"node"`
}

type removalAnswer struct {
	Removed     []removedPeer `json:"removed"`
	Unreachable []ring.NodeID `json:"unreachable"`
	// Recorded: the store has noted the removal, so it holds after a failover too. Else this node goes on trying.
	Recorded bool `json:"recorded"`
}

// serveRemoval takes people out of a room. Every node is asked, not only the one that the store
// names: whoever holds the room right now is the one who can.
func (s *Server) serveRemoval(w http.ResponseWriter, r *http.Request) {
	request, err := s.removalOf(r)
	if err != nil {
		writeFault(w, err)
		return
	}
	answer := s.removeEverywhere(r.Context(), request)
	answer.Recorded = s.noteRemoval(r.Context(), removalFrom(ring.RoomID(request.GetRoom()), request.GetIdentity(), answer.Removed, s.parts.Store.Now())) == nil
	status := http.StatusOK
	switch {
	case len(answer.Removed) > 0:
		s.log.Info("people removed from a room", "room", request.GetRoom(), "peers", len(answer.Removed))
	case len(answer.Unreachable) > 0:
		status = http.StatusServiceUnavailable // They may be with the one that did not answer.
	default:
		status = http.StatusNotFound
	}
	writeJSON(w, status, answer)
}

// removalOf reads whom somebody who runs a room wants to remove from it.
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
	if err := grant.ForRoomAdmin(room); err != nil {
		return nil, err
	}
	peer, identity := query.Get("peer"), query.Get("identity")
	if (peer == "") == (identity == "") || len(peer) > wire.MaxPeerIDBytes || len(identity) > access.MaxIdentityBytes {
		return nil, fmt.Errorf("%w: %w", wire.ErrMalformed, errWhom)
	}
	if !s.removals.Pass(string(room)) {
		return nil, errFlood
	}
	return &control.RemoveRequest{Room: string(room), Peer: peer, Identity: identity}, nil
}

func (s *Server) removeEverywhere(ctx context.Context, request *control.RemoveRequest) removalAnswer {
	answer := removalAnswer{Removed: []removedPeer{}, Unreachable: []ring.NodeID{}}
	var mu sync.Mutex // guards answer
	var asks errgroup.Group
	asks.SetLimit(roomsAtOnce)
	for _, n := range s.parts.Views.View().Nodes {
		asks.Go(func() error {
			removed, err := s.removeAt(ctx, n, request)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				s.log.Debug("node not asked to remove somebody", "node", n.ID, "error", err)
				answer.Unreachable = append(answer.Unreachable, n.ID)
			}
			for _, peer := range removed {
				answer.Removed = append(answer.Removed, removedPeer{Peer: peer, Node: n.ID})
			}
			return nil
		})
	}
	_ = asks.Wait() // Every ask returns nil: an unreachable node is part of the answer.
	slices.Sort(answer.Unreachable)
	slices.SortFunc(answer.Removed, func(a, b removedPeer) int { return cmp.Or(cmp.Compare(a.Peer, b.Peer), cmp.Compare(a.Node, b.Node)) })
	return answer
}

func (s *Server) removeAt(ctx context.Context, n cluster.Node, request *control.RemoveRequest) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, roomsPatience)
	defer cancel()
	client, err := s.parts.Links.Client(n.Control)
	if err != nil {
		return nil, err
	}
	reply, err := client.Remove(ctx, request)
	return reply.GetRemoved(), err
}
