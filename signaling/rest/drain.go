package rest

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/internal/events"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/signaling/fault"
	"github.com/holdfast-rtc/holdfast/signaling/moderation"
	"github.com/holdfast-rtc/holdfast/signaling/reply"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

const (
	drainPatience = 3 * time.Second
	longestDrain  = 24 * time.Hour
)

type drainAnswer struct {
	Node     ring.NodeID `json:"node"`
	Boot     pin.BootID  `json:"boot"`
	Draining bool        `json:"draining"`
	// Overdue says that the deadline has passed, so rooms move by restarts.
	Overdue bool   `json:"overdue"`
	Rooms   uint32 `json:"rooms"`
	Peers   uint32 `json:"peers"`
	// Gone is how the boot ended: left, as a drained process does, or dead.
	Gone    cluster.Departure        `json:"gone,omitempty"`
	Staying []moderation.StayingRoom `json:"staying"`
	// Unreachable are signaling nodes that did not say which rooms stay.
	Unreachable []ring.NodeID `json:"unreachable"`
}

func (a *API) serveDrain(w http.ResponseWriter, r *http.Request) {
	answer, err := a.drain(r)
	if err != nil {
		reply.Refuse(w, err)
		return
	}
	reply.JSON(w, http.StatusOK, answer)
}

func (a *API) drain(r *http.Request) (drainAnswer, error) {
	view, id := a.deps.Views.View(), ring.NodeID(chi.URLParam(r, "node"))
	if r.Method == http.MethodGet {
		if boot := pin.BootID(r.URL.Query().Get("boot")); boot != "" && view.Nodes[id].Boot != boot && view.Gone[boot] != "" {
			return drainAnswer{Node: id, Boot: boot, Gone: view.Gone[boot], Staying: []moderation.StayingRoom{}, Unreachable: []ring.NodeID{}}, nil
		}
	}
	node, err := MediaNode(view, id)
	if err != nil {
		return drainAnswer{}, err
	}
	if r.Method == http.MethodGet {
		return a.drainOf(r.Context(), node), nil
	}
	order, err := DrainOrder(r, view, node)
	if err != nil {
		return drainAnswer{}, err
	}
	answer, err := a.orderDrain(r.Context(), node, order)
	if err == nil {
		kind := events.NodeDrains
		if order.Undrain {
			kind = events.NodeUndrains
		}
		a.ordered(r, events.Event{Kind: kind, Node: node.ID, Role: string(node.Role), About: string(node.Boot)})
	}
	return answer, err
}

// MediaNode returns a live media node, or an error that names those there are.
func MediaNode(view *cluster.View, id ring.NodeID) (cluster.Node, error) {
	node, live := view.Nodes[id]
	if live {
		return node, nil
	}
	if _, signaling := view.Signaling[id]; signaling {
		return node, fault.Sayf(wire.CodeUnknownNode,
			"%s is a signaling node: end it by SIGTERM, and its clients go to the others.", id)
	}
	known := "no media node is up"
	if names := slices.Sorted(maps.Keys(view.Nodes)); len(names) > 0 {
		known = fmt.Sprintf("there are %s", joined(names))
	}
	return node, fault.Sayf(wire.CodeUnknownNode, "No media node named %.100q is up; %s.", id, known)
}

func joined(names []ring.NodeID) string {
	return strings.Join(each(names, func(id ring.NodeID) string { return string(id) }), ", ")
}

// DrainOrder reads an order, and refuses one that would lead nowhere.
func DrainOrder(r *http.Request, view *cluster.View, node cluster.Node) (control.DrainOrder, error) {
	if r.Method == http.MethodDelete {
		return control.DrainOrder{Undrain: true}, nil
	}
	var wanted struct {
		DeadlineMs int64 `json:"deadlineMs"`
		Keep       bool  `json:"keep"`
	}
	if err := readBody(r, maxBodyBytes, "{deadlineMs?, keep?}", &wanted); err != nil {
		return control.DrainOrder{}, err
	}
	if wanted.DeadlineMs < 0 || wanted.DeadlineMs > longestDrain.Milliseconds() {
		return control.DrainOrder{}, fmt.Errorf("%w: deadlineMs is %d, want 0 (the node's own) to %d", wire.ErrMalformed, wanted.DeadlineMs, longestDrain.Milliseconds())
	}
	if node.Draining {
		return control.DrainOrder{}, fault.Sayf(wire.CodeAlreadyDraining,
			"%s is draining already: %d rooms with %d people are left. Follow it with GET, or undo it with DELETE (holdfast undrain %s).",
			node.ID, node.Load.Rooms, node.Load.Peers, node.ID)
	}
	if !slices.ContainsFunc(slices.Collect(maps.Values(view.Nodes)), func(n cluster.Node) bool {
		return n.ID != node.ID && !n.Draining && !n.Suspect && !n.Unreachable
	}) {
		return control.DrainOrder{}, fault.Sayf(wire.CodeNoOtherNode,
			"%s is the last media node that takes rooms: there is nowhere to move its rooms to. Start another one, or undrain one, first.", node.ID)
	}
	return control.DrainOrder{Deadline: time.Duration(wanted.DeadlineMs) * time.Millisecond, Exit: !wanted.Keep}, nil
}

func (a *API) orderDrain(ctx context.Context, node cluster.Node, order control.DrainOrder) (drainAnswer, error) {
	ctx, cancel := context.WithTimeout(ctx, drainPatience)
	defer cancel()
	// Gossip may not have told of a restart yet.
	order.Boot = node.Boot
	told, err := a.deps.Pool.Drain(ctx, node.Control, order)
	switch {
	case err != nil:
		a.deps.Log.Warn("drain not ordered", "node", node.ID, "undrain", order.Undrain, "error", err)
		return drainAnswer{}, fault.Sayf(wire.CodeNodeUnreachable,
			"%s did not take the order at its control port %s: %v. Nothing has changed as far as is known; try again.", node.ID, node.Control, err)
	case told.GetBoot() != string(node.Boot):
		return drainAnswer{}, fault.Sayf(wire.CodeDrainRefused,
			"%s was restarted just now: look again, then repeat the order.", node.ID)
	// A node of an earlier release does not say whether it was draining.
	case order.Undrain && !told.GetWasDraining() && !node.Draining:
		return drainAnswer{}, fault.Sayf(wire.CodeNotDraining, "%s is not draining: it takes rooms.", node.ID)
	}
	a.deps.Log.Info("drain ordered", "node", node.ID, "undrain", order.Undrain, "deadline", order.Deadline, "exit", order.Exit)
	answer := a.drainOf(ctx, node)
	answer.Draining, answer.Rooms, answer.Peers = told.GetDraining(), told.GetRooms(), told.GetPeers()
	return answer, nil
}

func (a *API) drainOf(ctx context.Context, node cluster.Node) drainAnswer {
	answer := drainAnswer{
		Node: node.ID, Boot: node.Boot, Draining: node.Draining, Overdue: node.Overdue,
		Rooms: node.Load.Rooms, Peers: node.Load.Peers,
	}
	answer.Staying, answer.Unreachable = a.deps.Moderation.Staying(ctx, node.Boot)
	return answer
}
