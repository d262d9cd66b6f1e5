package node

import (
	"context"
	"fmt"
	"net"
	"strconv"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/internal/child"
	"github.com/holdfast-rtc/holdfast/internal/metrics"
)

// metricsFlag says where Prometheus reads the process. Nothing listens unless it is given, because several processes of one host would
// otherwise fight for one port.
type metricsFlag struct {
	MetricsListen string `placeholder:"[HOST:]PORT" help:"Where GET /metrics answers Prometheus, and a media node's GET /readyz says whether it can be given rooms; a port alone is one of loopback. Nothing listens unless it is given. Give strangers no way to it. See docs/METRICS.md."`
}

// address is host:port, or empty.
func (f metricsFlag) address() string {
	if _, err := strconv.ParseUint(f.MetricsListen, 10, 16); err == nil {
		return net.JoinHostPort("127.0.0.1", f.MetricsListen)
	}
	return f.MetricsListen
}

func (f metricsFlag) checkMetrics() error {
	if f.MetricsListen == "" {
		return nil
	}
	return CheckHostPort("metrics-listen", f.address())
}

// listenMetrics returns nil if the flag is not given.
func (f metricsFlag) listenMetrics(ctx context.Context) (net.Listener, error) {
	if f.MetricsListen == "" {
		return nil, nil //nolint:nilnil // no listener and no fault
	}
	var listening net.ListenConfig
	listener, err := listening.Listen(ctx, "tcp", f.address())
	if err != nil {
		return nil, fmt.Errorf("listen for Prometheus (--metrics-listen): %w", err)
	}
	return listener, nil
}

func closeListener(listener net.Listener) {
	if listener != nil {
		_ = listener.Close()
	}
}

// tellMetrics adds the address to those that a process announces.
func tellMetrics(listener net.Listener, addresses map[string]string) {
	if listener != nil {
		addresses[child.AddressMetrics] = listener.Addr().String()
	}
}

// measureCluster has Prometheus read what this node knows of the cluster by gossip.
func measureCluster(r *metrics.Registry, view func() *cluster.View, eventsLost func() uint64) {
	type reading = metrics.Reading[*cluster.View]
	metrics.Read(
		r, view,
		reading{
			Name: "media_nodes", Help: "Media nodes that this node knows by gossip, by state: up, draining, suspect (dead by gossip, unconfirmed), unreachable (not heard here).", Label: "state", Values: mediaNodes,
		},
		reading{Name: "signaling_nodes", Help: "Signaling nodes that this node knows by gossip, itself included.", Value: func(v *cluster.View) float64 {
			if v == nil {
				return 0
			}
			return float64(len(v.Signaling))
		}},
		reading{Name: "cluster_settled", Help: "1 once this node has seen the cluster.", Value: func(v *cluster.View) float64 {
			if v == nil || !v.Settled {
				return 0
			}
			return 1
		}},
	)
	metrics.Read(r, eventsLost, metrics.Reading[uint64]{
		Name: "events_lost_total", Help: "Events that were not kept, because too many waited for the store.", Counter: true, Value: func(n uint64) float64 { return float64(n) },
	})
}

func mediaNodes(view *cluster.View) map[string]float64 {
	count := map[string]float64{"up": 0, "draining": 0, "suspect": 0, "unreachable": 0}
	if view == nil {
		return count
	}
	for _, n := range view.Nodes {
		switch {
		case n.Suspect:
			count["suspect"]++
		case n.Unreachable:
			count["unreachable"]++
		case n.Draining:
			count["draining"]++
		default:
			count["up"]++
		}
	}
	return count
}
