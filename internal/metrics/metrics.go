// Package metrics is what Prometheus reads of a process: counters and histograms that other packages feed, and figures that are read when
// Prometheus asks.
//
// Each process makes one Registry and hands its parts to the actors that feed them: Placement, Failover, Clients, Store. Every method of
// a part is safe for concurrent use, and does nothing on a nil part, so that tests and tools need none. What a media node counts already
// is read by ReadMedia, so that no packet costs more.
//
// Labels are bounded: each value comes from a list that is known when the program is built. No room, user or address is in a label; the
// name of the process is in holdfast_build_info alone. All histograms have the same fixed buckets and are native histograms, too.
//
// It does not know who reads it, nor what an alert is: see docs/METRICS.md. Begin with New.
package metrics

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/holdfast-rtc/holdfast/internal/build"
	"github.com/holdfast-rtc/holdfast/internal/panics"
	"github.com/holdfast-rtc/holdfast/internal/readiness"
)

// prefix is that of every name.
const prefix = "holdfast_"

// Metric describes one metric for the documentation.
type Metric struct {
	Name string
	// Type is "counter", "gauge" or "histogram".
	Type   string
	Labels []string
	Help   string
}

// Registry has the metrics of one process.
type Registry struct {
	prom   *prometheus.Registry
	panics *panics.Guard
	log    *slog.Logger
	// described is only appended to while the process is wired.
	described []Metric
}

// New returns a Registry with the metrics of every process: its build, its caught panics, the Go runtime and the operating system's view.
// The role is "sfu", "signaling" or "front", and the node is its name.
func New(role, node string, guard *panics.Guard, log *slog.Logger) *Registry {
	r := &Registry{prom: prometheus.NewRegistry(), panics: guard, log: log}
	r.prom.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	info := build.Current()
	r.gaugeVec("build_info", "Always 1. The labels say which build runs under which name.", "role", "node", "version", "commit", "go").
		WithLabelValues(role, node, info.Version, info.Commit, info.Go).Set(1)
	Read(r, func() uint64 { return guard.Count() }, Reading[uint64]{
		Name: "panics_total", Help: "Panics that were caught. Each is a fault of the program.", Counter: true, Value: func(n uint64) float64 { return float64(n) },
	})
	return r
}

// Metrics lists what is registered, without the metrics of Go and of the operating system, sorted by name.
func (r *Registry) Metrics() []Metric {
	return slices.SortedFunc(slices.Values(r.described), func(a, b Metric) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
}

// Handler answers a scrape in the format that the scraper asks for.
func (r *Registry) Handler() http.Handler {
	return promhttp.HandlerFor(r.prom, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError, MaxRequestsInFlight: 4})
}

const (
	readLimit  = 10 * time.Second
	writeLimit = 30 * time.Second
	endLimit   = time.Second
)

// Serve answers GET /metrics, and GET /readyz if ready is not nil, until ctx ends. It returns nil at once if the listener is nil.
func (r *Registry) Serve(ctx context.Context, listener net.Listener, ready http.Handler) error {
	if listener == nil {
		return nil
	}
	routes := http.NewServeMux()
	routes.Handle("GET /metrics", r.Handler())
	if ready != nil {
		routes.Handle("GET "+readiness.Path, ready)
	}
	server := &http.Server{
		Handler: routes, ReadHeaderTimeout: readLimit, ReadTimeout: readLimit, WriteTimeout: writeLimit,
		ErrorLog: slog.NewLogLogger(r.log.Handler(), slog.LevelDebug),
	}
	ended := context.AfterFunc(ctx, func() {
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), endLimit)
		defer cancel()
		if server.Shutdown(limited) != nil {
			_ = server.Close()
		}
	})
	defer ended()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve metrics on %s: %w", listener.Addr(), err)
	}
	return nil
}

// seconds are the upper bounds of the buckets of every histogram. They are close together where a person begins to notice, and where
// Holdfast promises something: a gap of 150 ms, a silence of 200 ms of the store.
func seconds() []float64 {
	return []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 0.75, 1, 1.5, 2, 3, 5, 10, 30}
}

func (r *Registry) describe(name, kind, help string, labels []string) string {
	name = prefix + name
	r.described = append(r.described, Metric{Name: name, Type: kind, Labels: labels, Help: help})
	return name
}

func (r *Registry) counterVec(name, help string, labels ...string) *prometheus.CounterVec {
	vec := prometheus.NewCounterVec(prometheus.CounterOpts{Name: r.describe(name, "counter", help, labels), Help: help}, labels)
	r.prom.MustRegister(vec)
	return vec
}

func (r *Registry) gaugeVec(name, help string, labels ...string) *prometheus.GaugeVec {
	vec := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: r.describe(name, "gauge", help, labels), Help: help}, labels)
	r.prom.MustRegister(vec)
	return vec
}

// histogramVec measures seconds. A native histogram needs a scraper that asks for one; others get the fixed buckets.
func (r *Registry) histogramVec(name, help string, labels ...string) *prometheus.HistogramVec {
	vec := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: r.describe(name, "histogram", help, labels), Help: help, Buckets: seconds(),
		NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 160, NativeHistogramMinResetDuration: time.Hour,
	}, labels)
	r.prom.MustRegister(vec)
	return vec
}

// counted has the counter of each value of one label from the start, so that a rate sees the first event.
func counted(vec *prometheus.CounterVec, values ...string) *prometheus.CounterVec {
	for _, value := range values {
		vec.WithLabelValues(value)
	}
	return vec
}

// observed is counted for histograms.
func observed(vec *prometheus.HistogramVec, values ...string) *prometheus.HistogramVec {
	for _, value := range values {
		vec.WithLabelValues(value)
	}
	return vec
}
