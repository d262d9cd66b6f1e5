package rest

import (
	"cmp"
	"maps"
	"net/http"
	"slices"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/signaling/reply"
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
	Version              string       `json:"version"`      // of its build; empty: too old to say
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
	// MixedVersions: the nodes do not all run the same build.
	MixedVersions bool `json:"mixedVersions"`
}

func (a *API) serveNodes(w http.ResponseWriter, _ *http.Request) {
	view := a.deps.Views.View()
	answer := nodesAnswer{Nodes: []nodeRow{}, Settled: view.Settled}
	for _, n := range slices.Concat(slices.Collect(maps.Values(view.Nodes)), slices.Collect(maps.Values(view.Signaling))) {
		stalled, _ := a.deps.Hub.Stalled(n.Boot)
		var told, silent []string
		if a.deps.MediaSockets != nil {
			told, silent = a.deps.MediaSockets.Told(n.Boot)
		}
		answer.Nodes = append(answer.Nodes, nodeRow{
			Node: n.ID, Boot: string(n.Boot), Role: n.Role, Control: n.Control, Media: n.Media, HTTP: n.HTTP, Protocol: n.Protocol, Capabilities: n.Capabilities,
			Version: n.Version, Draining: n.Draining, Suspect: n.Suspect, Unreachable: n.Unreachable, Stalled: stalled, Rooms: n.Load.Rooms, Peers: n.Load.Peers,
			EgressBitsPerSecond: n.Load.EgressBitsPerSecond, CeilingBitsPerSecond: n.Load.CeilingBitsPerSecond,
			EgressPacketsPerSecond: n.Load.EgressPacketsPerSecond, CeilingPacketsPerSecond: n.Load.CeilingPacketsPerSecond,
			FloorBitsPerSecond: n.Load.FloorBitsPerSecond, LimitedSeconds: n.Load.Limited,
			Sockets: n.Load.Sockets, MediaTold: told, MediaSilent: silent,
		})
	}
	slices.SortFunc(answer.Nodes, func(a, b nodeRow) int { return cmp.Or(cmp.Compare(a.Role, b.Role), cmp.Compare(a.Node, b.Node)) })
	for _, n := range answer.Nodes {
		answer.MixedVersions = answer.MixedVersions || n.Version != answer.Nodes[0].Version
	}
	reply.JSON(w, http.StatusOK, answer)
}
