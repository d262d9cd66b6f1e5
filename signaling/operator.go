package signaling

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/orchestrator"
	"github.com/holdfast-rtc/holdfast/ring"
)

const (
	roomsPatience = 2 * time.Second
	roomsAtOnce   = 32
)

type nodeRow struct {
	Node                 ring.NodeID  `json:"node"`
	Boot                 string       `json:"boot"`
	Role                 cluster.Role `json:"role"`
	Control              string       `json:"control,omitempty"`
	Media                string       `json:"media,omitempty"`
	HTTP                 string       `json:"http,omitempty"`
	Protocol             uint32       `json:"protocol"`     // of the control port; 0: too old to say
	Capabilities         string       `json:"capabilities"` // separated by commas
	Draining             bool         `json:"draining"`
	Suspect              bool         `json:"suspect"`     // by gossip: no new rooms
	Unreachable          bool         `json:"unreachable"` // not heard here
	Stalled              int          `json:"stalled"`     // sessions here that receive nothing
	Rooms                uint32       `json:"rooms"`
	Peers                uint32       `json:"peers"`
	EgressBitsPerSecond  uint64       `json:"egressBitsPerSecond"`
	CeilingBitsPerSecond uint64       `json:"ceilingBitsPerSecond"`

	EgressPacketsPerSecond  uint64 `json:"egressPacketsPerSecond"`
	CeilingPacketsPerSecond uint64 `json:"ceilingPacketsPerSecond"`

	FloorBitsPerSecond uint64 `json:"floorBitsPerSecond"` // at the lowest layers
	LimitedSeconds     uint32 `json:"limitedSeconds"`     // since pictures are held back; 0: they are not

	Sockets uint32 `json:"sockets"` // of a signaling node

	MediaTold   []string `json:"mediaTold,omitempty"`   // the media sockets that clients are told of
	MediaSilent []string `json:"mediaSilent,omitempty"` // those that do not answer here
}

type nodesAnswer struct {
	Nodes   []nodeRow `json:"nodes"`
	Settled bool      `json:"settled"`
}

type heldPeer struct {
	Peer      string `json:"peer"`
	Identity  string `json:"identity"`
	Attached  bool   `json:"attached"`
	Connected bool   `json:"connected"`
	Offers    uint64 `json:"offers"`
	Media     *media `json:"media,omitempty"`
}

type heldRoom struct {
	Room                string     `json:"room"`
	Node                string     `json:"node"`
	Boot                string     `json:"boot"`
	Epoch               uint64     `json:"epoch"`
	Peers               []heldPeer `json:"peers"`
	PacketsForwarded    uint64     `json:"packetsForwarded"`
	PacketsDropped      uint64     `json:"packetsDropped"`
	PacketsLate         uint64     `json:"packetsLate"`
	EgressBitsPerSecond uint64     `json:"egressBitsPerSecond"`
}

type roomsAnswer struct {
	Rooms       []heldRoom    `json:"rooms"`
	Unreachable []ring.NodeID `json:"unreachable"`
}

type roomAnswer struct {
	Explanation *orchestrator.Explanation `json:"explanation,omitempty"` // for who may see the whole cluster
	HeldBy      []heldRoom                `json:"heldBy"`
	Unreachable []ring.NodeID             `json:"unreachable"`
}

func (s *Server) serveNodes(w http.ResponseWriter, _ *http.Request) {
	view := s.parts.Views.View()
	answer := nodesAnswer{Nodes: []nodeRow{}, Settled: view.Settled}
	for _, n := range slices.Concat(slices.Collect(maps.Values(view.Nodes)), slices.Collect(maps.Values(view.Signaling))) {
		stalled, _ := s.hub.Stalled(n.Boot)
		var told, silent []string
		if s.parts.MediaSockets != nil {
			told, silent = s.parts.MediaSockets.Told(n.Boot)
		}
		answer.Nodes = append(answer.Nodes, nodeRow{
			Node: n.ID, Boot: string(n.Boot), Role: n.Role, Control: n.Control, Media: n.Media, HTTP: n.HTTP, Protocol: n.Protocol, Capabilities: n.Capabilities,
			Draining: n.Draining, Suspect: n.Suspect, Unreachable: n.Unreachable, Stalled: stalled, Rooms: n.Load.Rooms, Peers: n.Load.Peers,
			EgressBitsPerSecond: n.Load.EgressBitsPerSecond, CeilingBitsPerSecond: n.Load.CeilingBitsPerSecond,
			EgressPacketsPerSecond: n.Load.EgressPacketsPerSecond, CeilingPacketsPerSecond: n.Load.CeilingPacketsPerSecond,
			FloorBitsPerSecond: n.Load.FloorBitsPerSecond, LimitedSeconds: n.Load.Limited,
			Sockets: n.Load.Sockets, MediaTold: told, MediaSilent: silent,
		})
	}
	slices.SortFunc(answer.Nodes, func(a, b nodeRow) int { return cmp.Or(cmp.Compare(a.Role, b.Role), cmp.Compare(a.Node, b.Node)) })
	writeJSON(w, http.StatusOK, answer)
}

func (s *Server) serveRooms(w http.ResponseWriter, r *http.Request) {
	writeJSON(w, http.StatusOK, s.askAll(r.Context(), r.URL.Query().Has("media")))
}

// serveRoom answers who runs the room or sees the cluster.
func (s *Server) serveRoom(w http.ResponseWriter, r *http.Request) {
	grant, err := s.grantOf(r)
	if err != nil {
		writeFault(w, err)
		return
	}
	room, err := roomOf(r, "")
	if err != nil {
		writeFault(w, err)
		return
	}
	var answer roomAnswer
	if grant.ForCluster() == nil { // it names other rooms' nodes
		explanation, err := s.parts.Placer.Explain(r.Context(), room)
		if err != nil {
			writeFault(w, err)
			return
		}
		answer.Explanation = &explanation
	} else if err := s.mayAsk(grant, room); err != nil {
		writeFault(w, err)
		return
	}
	all := s.askAll(r.Context(), false)
	answer.HeldBy = slices.DeleteFunc(all.Rooms, func(h heldRoom) bool { return h.Room != string(room) })
	answer.Unreachable = all.Unreachable
	writeJSON(w, http.StatusOK, answer)
}

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

// The store has intentions only, so every node is asked.
func (s *Server) askAll(ctx context.Context, media bool) roomsAnswer {
	rooms, unreachable := askNodes(ctx, s, "rooms", func(ctx context.Context, _ cluster.Node, client control.MediaClient) ([]heldRoom, error) {
		reply, err := client.Rooms(ctx, &control.RoomsRequest{Media: media})
		return heldRooms(reply), err
	})
	slices.SortFunc(rooms, func(a, b heldRoom) int { return cmp.Or(cmp.Compare(a.Room, b.Room), cmp.Compare(a.Node, b.Node)) })
	return roomsAnswer{Rooms: rooms, Unreachable: unreachable}
}

func heldRooms(reply *control.RoomsReply) []heldRoom {
	return each(reply.GetRooms(), func(h *control.HeldRoom) heldRoom {
		return heldRoom{
			Room: h.GetRoom(), Node: reply.GetNode(), Boot: reply.GetBoot(), Epoch: h.GetPin().GetFence().GetEpoch(),
			PacketsForwarded: h.GetPacketsForwarded(), PacketsDropped: h.GetPacketsDropped(), PacketsLate: h.GetPacketsLate(), EgressBitsPerSecond: h.GetEgressBitsPerSecond(),
			Peers: each(h.GetPeers(), func(p *control.HeldPeer) heldPeer {
				return heldPeer{
					Peer: p.GetId(), Identity: p.GetIdentity(), Attached: p.GetAttached(), Connected: p.GetConnected(), Offers: p.GetOffers(),
					Media: mediaOf(p.GetMedia()),
				}
			}),
		}
	})
}
