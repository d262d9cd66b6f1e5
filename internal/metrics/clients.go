package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// The phases of a join.
const (
	// JoinPlaced ends when it is known where the room lives.
	JoinPlaced = "place"
	// JoinAttached lasts from then on until the media node has accepted the person.
	JoinAttached = "attach"
	// JoinAnswered is the whole time from the WebSocket to the answer to the client.
	JoinAnswered = "whole"
)

// CodeOK stands for no error in the label code.
const CodeOK = "ok"

// The ways of a client's media.
const (
	WayUDP  = "udp"
	WayTCP  = "tcp"
	WayTURN = "relay"
	WayNone = "none"
)

// Clients counts what clients do and tell at a signaling node.
type Clients struct {
	joins    *prometheus.CounterVec
	joinTook *prometheus.HistogramVec
	gaps     *prometheus.HistogramVec
	ways     *prometheus.CounterVec
	stalls   *prometheus.CounterVec
	ends     *prometheus.CounterVec
}

// NewClients registers the metrics. Hows are the ways in which a client follows its room.
func (r *Registry) NewClients(hows ...string) *Clients {
	if r == nil {
		return nil
	}
	c := &Clients{
		joins:    r.counterVec("joins_total", "First messages of clients, by kind (join, resume, connect) and by the code of the refusal, or ok.", "kind", "code"),
		joinTook: observed(r.histogramVec("join_seconds", "Time of joins and resumes that succeeded, by phase: place (where the room lives), attach (the media node accepts), whole (from the WebSocket to the answer).", "phase"), JoinPlaced, JoinAttached, JoinAnswered),
		gaps:     observed(r.histogramVec("gap_seconds", "Longest time without a frame or sound that a client measured while its room moved, by how it followed: restart (its connection begins anew), new-connection, live (both nodes were alive).", "how"), hows...),
		ways:     counted(r.counterVec("client_media_ways_total", "Reports of clients whose media goes by another way than UDP, or changed its way, by way: udp, tcp, relay, none.", "way"), WayUDP, WayTCP, WayTURN, WayNone),
		stalls:   r.counterVec("client_stalls_total", "Reports of clients that receive no media although their room is open."),
		ends:     r.counterVec("session_ends_total", "Ends of sessions, by the WebSocket's closing code; 0 is a lost connection.", "code"),
	}
	c.stalls.WithLabelValues()
	for _, kind := range []string{"join", "resume", "connect"} {
		c.joins.WithLabelValues(kind, CodeOK)
	}
	return c
}

// Joined counts a first message of a client. The code is one of signaling/wire, or CodeOK.
func (c *Clients) Joined(kind, code string) {
	if c != nil {
		c.joins.WithLabelValues(kind, code).Inc()
	}
}

// JoinTook measures a phase of a join that succeeded.
func (c *Clients) JoinTook(phase string, took time.Duration) {
	if c != nil {
		c.joinTook.WithLabelValues(phase).Observe(took.Seconds())
	}
}

// Gap is the longest silence that one client measured.
func (c *Clients) Gap(how string, gap time.Duration) {
	if c != nil {
		c.gaps.WithLabelValues(how).Observe(gap.Seconds())
	}
}

// Way counts a client's report of the way of its media.
func (c *Clients) Way(way string) {
	if c != nil {
		c.ways.WithLabelValues(way).Inc()
	}
}

// Stalled counts a client's report that no media arrives.
func (c *Clients) Stalled() {
	if c != nil {
		c.stalls.WithLabelValues().Inc()
	}
}

// Ended counts the end of a session by its closing code.
func (c *Clients) Ended(code string) {
	if c != nil {
		c.ends.WithLabelValues(code).Inc()
	}
}
