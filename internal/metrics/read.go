package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
)

// Reading is one metric of a snapshot S. It has either Value, or a Label with Values, which gives a figure for each value of the label.
type Reading[S any] struct {
	Name, Help string
	// Counter says that the figure only grows; otherwise it is a gauge.
	Counter bool
	Value   func(S) float64
	Label   string
	Values  func(S) map[string]float64
}

// Read registers metrics that are read from a snapshot, which take makes once for each scrape. Take is called concurrently, and may wait
// for a moment. If it panics, that is caught and the scrape goes on without these metrics.
func Read[S any](r *Registry, take func() S, readings ...Reading[S]) {
	c := &snapshot[S]{registry: r, take: take}
	for _, reading := range readings {
		kind, called := prometheus.GaugeValue, "gauge"
		if reading.Counter {
			kind, called = prometheus.CounterValue, "counter"
		}
		var labels []string
		if reading.Label != "" {
			labels = []string{reading.Label}
		}
		name := r.describe(reading.Name, called, reading.Help, labels)
		c.parts = append(c.parts, part[S]{Reading: reading, kind: kind, desc: prometheus.NewDesc(name, reading.Help, labels, nil)})
	}
	r.prom.MustRegister(c)
}

type part[S any] struct {
	Reading[S]

	kind prometheus.ValueType
	desc *prometheus.Desc
}

// snapshot is a prometheus.Collector.
type snapshot[S any] struct {
	registry *Registry
	take     func() S
	parts    []part[S]
}

// Describe implements prometheus.Collector.
func (c *snapshot[S]) Describe(out chan<- *prometheus.Desc) {
	for i := range c.parts {
		out <- c.parts[i].desc
	}
}

// Collect implements prometheus.Collector.
func (c *snapshot[S]) Collect(out chan<- prometheus.Metric) {
	c.registry.panics.Catch(c.registry.log, "reading metrics broke: the scrape goes on without them", func() {
		now := c.take()
		for i := range c.parts {
			p := &c.parts[i]
			if p.Label == "" {
				out <- prometheus.MustNewConstMetric(p.desc, p.kind, p.Value(now))
				continue
			}
			for value, figure := range p.Values(now) {
				out <- prometheus.MustNewConstMetric(p.desc, p.kind, figure, value)
			}
		}
	})
}
