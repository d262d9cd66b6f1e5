package rest

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/signaling/reply"
)

type nodeRow struct {
	Node ring.NodeID  `json:"node"`
	Boot string       `json:"boot"`
	Role cluster.Role `json:"role"`
	// State is up, dead or left. Of a node that is gone only At, Cause, Boot and Version are known.
	State nodeState `json:"state"`
	// At is when a node died or left.
	At time.Time `json:"at,omitzero"`
	// Cause is the evidence of a death, in words.
	Cause string `json:"cause,omitempty"`

	Control string `json:"control,omitempty"`
	Media   string `json:"media,omitempty"`
	HTTP    string `json:"http,omitempty"`
	// Protocol is that of the control port; 0 if the node is too old to say.
	Protocol uint32 `json:"protocol"`
	// Capabilities are separated by commas.
	Capabilities string `json:"capabilities"`
	// Version is that of the node's build; empty if the node is too old to say.
	Version  string `json:"version"`
	Draining bool   `json:"draining"`
	// Suspect says that gossip reports the node dead. It gets no new rooms.
	Suspect bool `json:"suspect"`
	// Unreachable says that this signaling node does not hear it.
	Unreachable bool `json:"unreachable"`
	// Stalled counts sessions of this signaling node that receive nothing from it.
	Stalled              int    `json:"stalled"`
	Rooms                uint32 `json:"rooms"`
	Peers                uint32 `json:"peers"`
	EgressBitsPerSecond  uint64 `json:"egressBitsPerSecond"`
	CeilingBitsPerSecond uint64 `json:"ceilingBitsPerSecond"`

	EgressPacketsPerSecond  uint64 `json:"egressPacketsPerSecond"`
	CeilingPacketsPerSecond uint64 `json:"ceilingPacketsPerSecond"`

	// The egress if all rooms were at their lowest layers.
	FloorBitsPerSecond uint64 `json:"floorBitsPerSecond"`
	// LimitedSeconds is for how long pictures have been held back; 0 if they are not.
	LimitedSeconds uint32 `json:"limitedSeconds"`

	// Sockets are those of a signaling node.
	Sockets uint32 `json:"sockets"`
	// Waiting are the people of a signaling node who stand in a line.
	Waiting uint32 `json:"waiting"`

	// MediaTold are the media sockets of which clients are told.
	MediaTold []string `json:"mediaTold,omitempty"`
	// MediaSilent are those of them that do not answer this signaling node.
	MediaSilent []string `json:"mediaSilent,omitempty"`
}

type nodeState string

const stateUp nodeState = "up"

type nodesAnswer struct {
	Nodes   []nodeRow `json:"nodes"`
	Settled bool      `json:"settled"`
	// MixedVersions says that the nodes do not all run the same build.
	MixedVersions bool `json:"mixedVersions"`
}

// serveNodes lists the members and, for an hour, those that are gone and have not returned.
func (a *API) serveNodes(w http.ResponseWriter, r *http.Request) {
	view := a.deps.Views.View()
	answer := nodesAnswer{Nodes: []nodeRow{}, Settled: view.Settled}
	for _, n := range slices.Concat(slices.Collect(maps.Values(view.Nodes)), slices.Collect(maps.Values(view.Signaling))) {
		stalled, _ := a.deps.Hub.Stalled(n.Boot)
		var told, silent []string
		if a.deps.MediaSockets != nil {
			told, silent = a.deps.MediaSockets.Told(n.Boot)
		}
		answer.Nodes = append(answer.Nodes, nodeRow{
			Node: n.ID, Boot: string(n.Boot), Role: n.Role, State: stateUp, Control: n.Control, Media: n.Media, HTTP: n.HTTP, Protocol: n.Protocol, Capabilities: n.Capabilities,
			Version: n.Version, Draining: n.Draining, Suspect: n.Suspect, Unreachable: n.Unreachable, Stalled: stalled, Rooms: n.Load.Rooms, Peers: n.Load.Peers,
			EgressBitsPerSecond: n.Load.EgressBitsPerSecond, CeilingBitsPerSecond: n.Load.CeilingBitsPerSecond,
			EgressPacketsPerSecond: n.Load.EgressPacketsPerSecond, CeilingPacketsPerSecond: n.Load.CeilingPacketsPerSecond,
			FloorBitsPerSecond: n.Load.FloorBitsPerSecond, LimitedSeconds: n.Load.Limited,
			Sockets: n.Load.Sockets, Waiting: n.Load.Waiting, MediaTold: told, MediaSilent: silent,
		})
	}
	for i := range answer.Nodes {
		answer.MixedVersions = answer.MixedVersions || answer.Nodes[i].Version != answer.Nodes[0].Version
	}
	for name, gone := range a.departed.all(r.Context(), view, time.Now()) {
		row := nodeRow{Node: name.ID, Boot: string(gone.boot), Role: name.Role, State: nodeState(gone.how), At: gone.at, Version: gone.version}
		if gone.how == cluster.DepartureDead {
			row.Cause = gone.why
		}
		answer.Nodes = append(answer.Nodes, row)
	}
	slices.SortFunc(answer.Nodes, func(a, b nodeRow) int { return cmp.Or(cmp.Compare(a.Role, b.Role), cmp.Compare(a.Node, b.Node)) })
	reply.JSON(w, http.StatusOK, answer)
}
