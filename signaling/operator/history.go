package operator

import (
	"context"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/internal/backoff"
	"github.com/holdfast-rtc/holdfast/ring"
)

const (
	// SampleEvery is how far apart the samples of a History are.
	SampleEvery = 10 * time.Second
	// Samples is how many a History keeps of each node: those of 15 minutes.
	Samples = 90
	// MaxAsked bounds the nodes of one question.
	MaxAsked = 200
)

// unknown stands for the moments in which a node was not there.
const unknown = -1

// History remembers each media node's load of the last 15 minutes, as this process heard it.
type History struct {
	mu    sync.Mutex
	nodes map[ring.NodeID][]int16
}

// Run samples until ctx ends.
func (h *History) Run(ctx context.Context, view func() *cluster.View) {
	backoff.Every(ctx, SampleEvery, func() { h.sample(view()) })
}

// sample appends to each series, so that all of them end now. The series of a node that has been away for the whole time is forgotten.
func (h *History) sample(view *cluster.View) {
	if view == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.nodes == nil {
		h.nodes = map[ring.NodeID][]int16{}
	}
	for id := range view.Nodes {
		if _, known := h.nodes[id]; !known {
			h.nodes[id] = nil
		}
	}
	for id, series := range h.nodes {
		load := int16(unknown)
		if n, up := view.Nodes[id]; up {
			load = int16(min(math.Round(100*Share(n.Load)), math.MaxInt16))
		}
		series = append(series, load)
		series = slices.Delete(series, 0, max(len(series)-Samples, 0))
		if !slices.ContainsFunc(series, func(load int16) bool { return load != unknown }) {
			delete(h.nodes, id)
			continue
		}
		h.nodes[id] = series
	}
}

// Of returns the load of the nodes as a percentage of the tighter ceiling, the oldest sample first, and -1 where a node was not there. A
// node without samples is left out.
func (h *History) Of(nodes []ring.NodeID) map[ring.NodeID][]int16 {
	h.mu.Lock()
	defer h.mu.Unlock()
	found := make(map[ring.NodeID][]int16, len(nodes))
	for _, id := range nodes {
		if series := h.nodes[id]; len(series) > 0 {
			found[id] = slices.Clone(series)
		}
	}
	return found
}

// Share is the load as a part of the tighter ceiling, from 0 (nothing) over 1 (full).
func Share(l cluster.Load) float64 {
	return max(part(l.EgressBitsPerSecond, l.CeilingBitsPerSecond), part(l.EgressPacketsPerSecond, l.CeilingPacketsPerSecond))
}

func part(of, ceiling uint64) float64 {
	if ceiling == 0 {
		return 0
	}
	return float64(of) / float64(ceiling)
}
