package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Media measures what happens seldom at a media node. What is counted for each packet is read with Read.
type Media struct {
	connected *prometheus.HistogramVec
	refusals  *prometheus.CounterVec
	opened    *prometheus.CounterVec
	drains    *prometheus.CounterVec
}

// NewMedia registers the metrics. Refusals are the reasons for which a media node refuses to attach a person.
func (r *Registry) NewMedia(refusals []string) *Media {
	if r == nil {
		return nil
	}
	m := &Media{
		connected: r.histogramVec("media_connect_seconds", "Time from a client's offer to its encrypted media connection (ICE and DTLS)."),
		refusals:  counted(r.counterVec("attach_refusals_total", "People whom this media node refused, by reason; most are placed again at once.", "reason"), refusals...),
		opened:    r.counterVec("rooms_opened_total", "Rooms that this media node opened, new ones and those that came from another node."),
		drains:    r.counterVec("drains_total", "Drains of this media node that began."),
	}
	m.opened.WithLabelValues()
	m.drains.WithLabelValues()
	return m
}

// Connected is how long a client's connection took.
func (m *Media) Connected(took time.Duration) {
	if m != nil {
		m.connected.WithLabelValues().Observe(took.Seconds())
	}
}

// Refused counts a person who was not attached.
func (m *Media) Refused(reason string) {
	if m != nil {
		m.refusals.WithLabelValues(reason).Inc()
	}
}

// Opened counts a room.
func (m *Media) Opened() {
	if m != nil {
		m.opened.WithLabelValues().Inc()
	}
}

// Drained counts the beginning of a drain.
func (m *Media) Drained() {
	if m != nil {
		m.drains.WithLabelValues().Inc()
	}
}
