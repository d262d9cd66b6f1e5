package rest

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/internal/build"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/signaling/access"
	"github.com/holdfast-rtc/holdfast/signaling/moderation"
	"github.com/holdfast-rtc/holdfast/signaling/operator"
	"github.com/holdfast-rtc/holdfast/signaling/reply"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

type overviewAnswer struct {
	// Node answers, and Version is its build.
	Node    ring.NodeID `json:"node"`
	Version string      `json:"version"`
	At      time.Time   `json:"at"`
	Rooms   uint64      `json:"rooms"`
	Peers   uint64      `json:"peers"`
	Sockets uint64      `json:"sockets"`
	// Waiting people stand in lines before rooms.
	Waiting             uint64 `json:"waiting"`
	EgressBitsPerSecond uint64 `json:"egressBitsPerSecond"`
	// CeilingBitsPerSecond is that of all media nodes which take rooms.
	CeilingBitsPerSecond uint64 `json:"ceilingBitsPerSecond"`
	// Online is how many identities are online. It is absent while the store does not answer.
	Online *int64 `json:"online,omitempty"`
	// StoreMillis is how long the store took to count them.
	StoreMillis *float64 `json:"storeMs,omitempty"`
}

// serveOverview sums the cluster up, as this signaling node knows it by gossip and from the store.
func (a *API) serveOverview(w http.ResponseWriter, r *http.Request) {
	answer := overviewAnswer{Node: a.deps.Config.Node, Version: build.Current().Short(), At: time.Now().UTC()}
	view := a.deps.Views.View()
	for _, n := range view.Nodes {
		answer.Rooms, answer.Peers = answer.Rooms+uint64(n.Load.Rooms), answer.Peers+uint64(n.Load.Peers)
		answer.EgressBitsPerSecond += n.Load.EgressBitsPerSecond
		if !n.Draining && !n.Suspect {
			answer.CeilingBitsPerSecond += n.Load.CeilingBitsPerSecond
		}
	}
	for _, n := range view.Signaling {
		answer.Sockets, answer.Waiting = answer.Sockets+uint64(n.Load.Sockets), answer.Waiting+uint64(n.Load.Waiting)
	}
	ctx, cancel := context.WithTimeout(r.Context(), askLimitUsers)
	defer cancel()
	asked := time.Now()
	if online, err := a.deps.Users.Count(ctx); err == nil {
		took := float64(time.Since(asked).Microseconds()) / 1000
		answer.Online, answer.StoreMillis = &online, &took
	}
	reply.JSON(w, http.StatusOK, answer)
}

// ringPoints is how finely the ring is told: a pixel or two of a drawing, however many nodes there are.
const ringPoints = 1440

type ringAnswer struct {
	// Nodes are those on the ring, and Shares which part of all hashes each owns.
	Nodes  []ring.NodeID `json:"nodes"`
	Shares []float64     `json:"shares"`
	// Owners are indices into Nodes: entry i owns the hash i/len(owners) of the way around.
	Owners []int `json:"owners"`
}

// serveRing tells the ring coarsely, for a drawing.
func (a *API) serveRing(w http.ResponseWriter, _ *http.Request) {
	view := a.deps.Views.View()
	answer := ringAnswer{Nodes: []ring.NodeID{}, Owners: []int{}, Shares: view.Ring.Shares()}
	answer.Nodes = append(answer.Nodes, view.Ring.Nodes()...)
	for i := range uint64(ringPoints) {
		if owner, ok := view.Ring.OwnerAt(uint32(i << 32 / ringPoints)); ok {
			answer.Owners = append(answer.Owners, owner)
		}
	}
	reply.JSON(w, http.StatusOK, answer)
}

type loadsAnswer struct {
	EverySeconds int `json:"everySeconds"`
	// Loads are in percent of the tighter ceiling, the oldest first; -1: the node was not there.
	Loads map[ring.NodeID][]int16 `json:"loads"`
}

// serveLoads answers ?node=, repeated, with the loads of the last 15 minutes.
func (a *API) serveLoads(w http.ResponseWriter, r *http.Request) {
	names := r.URL.Query()["node"]
	if len(names) > operator.MaxAsked {
		reply.Refuse(w, fmt.Errorf("%w: name at most %d nodes", wire.ErrMalformed, operator.MaxAsked))
		return
	}
	nodes := each(names, func(name string) ring.NodeID { return ring.NodeID(name) })
	reply.JSON(w, http.StatusOK, loadsAnswer{EverySeconds: int(operator.SampleEvery / time.Second), Loads: a.deps.Loads.Of(nodes)})
}

// PageOf reads ?search=&sort=room|node|people|egress|dropped&order=asc|desc&offset=&limit=.
func PageOf(query url.Values) (operator.Question, error) {
	q := operator.Question{Search: query.Get("search"), By: operator.ByEgress, Limit: 100}
	if by := query.Get("sort"); by != "" {
		if q.By = operator.Column(by); !q.By.Valid() {
			return q, fmt.Errorf("%w: sort is room, node, people, egress or dropped, not %.40q", wire.ErrMalformed, by)
		}
	}
	switch order := query.Get("order"); order {
	case "", "desc":
	case "asc":
		q.Ascending = true
	default:
		return q, fmt.Errorf("%w: order is asc or desc, not %.40q", wire.ErrMalformed, order)
	}
	for name, number := range map[string]struct {
		into        *int
		least, most int
	}{"offset": {&q.Offset, 0, 1 << 30}, "limit": {&q.Limit, 1, operator.MaxPage}} {
		text := query.Get(name)
		if text == "" {
			continue
		}
		value, err := strconv.Atoi(text)
		if err != nil || value < number.least || value > number.most {
			return q, fmt.Errorf("%w: %s is a number from %d to %d, not %.40q", wire.ErrMalformed, name, number.least, number.most, text)
		}
		*number.into = value
	}
	return q, nil
}

// serveRoomList answers with a page of all rooms.
func (a *API) serveRoomList(w http.ResponseWriter, r *http.Request) {
	q, err := PageOf(r.URL.Query())
	if err != nil {
		reply.Refuse(w, err)
		return
	}
	// The answer of the nodes serves others, too.
	ctx := context.WithoutCancel(r.Context())
	reply.JSON(w, http.StatusOK, a.list.Page(ctx, q, func(ctx context.Context) ([]operator.Room, []ring.NodeID) {
		return moderation.AskNodes(ctx, a.deps.Moderation, "room list", func(ctx context.Context, n cluster.Node, client control.MediaClient) ([]operator.Room, error) {
			held, err := client.Rooms(ctx, &control.RoomsRequest{Brief: true})
			return each(held.GetRooms(), func(h *control.HeldRoom) operator.Room { return operator.RoomOf(n.ID, h) }), err
		})
	}))
}

// serveDevOperator gives a page of this machine the operator's token of a development cluster.
func (a *API) serveDevOperator(w http.ResponseWriter, r *http.Request) {
	if !fromHere(r) || r.Header.Get(devHeader) == "" {
		reply.Refuse(w, errNotFromHere)
		return
	}
	grant := access.Operator("dev-operator")
	token, err := a.deps.Keys.Mint("", grant, devTokenLife)
	if err != nil {
		reply.Refuse(w, err)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	reply.JSON(w, http.StatusOK, map[string]string{"token": token})
}
