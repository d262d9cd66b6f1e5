package signaling

import (
	"strconv"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/metrics"
	"github.com/holdfast-rtc/holdfast/people/messaging"
	"github.com/holdfast-rtc/holdfast/signaling/relay"
	"github.com/holdfast-rtc/holdfast/signaling/reply"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// NewMetrics registers what clients do.
func NewMetrics(r *metrics.Registry) *metrics.Clients {
	return r.NewClients(wire.HowRestart, wire.HowNewConnection, wire.HowLive)
}

// figures is what Prometheus reads of a signaling node.
type figures struct {
	sockets, pending, waiting, overloaded int
	sentAway                              uint64
	messages                              messaging.Counters
	presences, watches                    int
	relay                                 relay.Counters
}

// Measure has Prometheus read this node's figures. The relay is nil if there is none.
func (s *Server) Measure(r *metrics.Registry, relayed func() relay.Counters) {
	take := func() figures {
		pending, sentAway := s.pending.Count()
		now := figures{
			sockets: int(s.sockets.Load()), pending: pending, sentAway: sentAway, waiting: s.doors.Waiting(), messages: s.parts.Messages.Counters(),
		}
		now.presences, now.watches = s.parts.Presence.Count()
		if s.overloaded.Load() {
			now.overloaded = 1
		}
		if relayed != nil {
			now.relay = relayed()
		}
		return now
	}
	type reading = metrics.Reading[figures]
	gauge := func(name, help string, value func(figures) int) reading {
		return reading{Name: name, Help: help, Value: func(f figures) float64 { return float64(value(f)) }}
	}
	counter := func(name, help string, value func(figures) uint64) reading {
		return reading{Name: name, Help: help, Counter: true, Value: func(f figures) float64 { return float64(value(f)) }}
	}
	metrics.Read(
		r, take,
		gauge("sockets", "WebSockets with a session at this signaling node.", func(f figures) int { return f.sockets }),
		gauge("sockets_pending", "Connections without a session yet.", func(f figures) int { return f.pending }),
		counter("sockets_sent_away_total", "Connections that were dropped before they had a session, because too many waited.", func(f figures) uint64 { return f.sentAway }),
		gauge("sockets_uneven", "1 while this signaling node leaves new sockets to the others, because it has far more than they have.", func(f figures) int { return f.overloaded }),
		gauge("line_waiting", "People who wait in front of a room with a cap or a closed door.", func(f figures) int { return f.waiting }),
		gauge("presence_connections", "Connections whose presence this signaling node keeps in the store.", func(f figures) int { return f.presences }),
		gauge("presence_watches", "Users that clients of this signaling node watch, counted once for each client.", func(f figures) int { return f.watches }),
		reading{
			Name: "messages_total", Help: "Direct messages of users at this signaling node, by how far they came: accepted, then delivered, offline, gave_up or refused.", Counter: true, Label: "state",
			Values: func(f figures) map[string]float64 {
				m := f.messages
				return map[string]float64{
					"accepted": float64(m.Accepted), "delivered": float64(m.Delivered), "offline": float64(m.Offline), "gave_up": float64(m.GaveUp), "refused": float64(m.Refused),
				}
			},
		},
		gauge("messages_waiting", "Direct messages that are not answered yet.", func(f figures) int { return f.messages.Waiting }),
		gauge("relay_allocations", "Relayed connections (TURN) at this signaling node; 0 without a relay.", func(f figures) int { return int(f.relay.Allocations) }),
		reading{
			Name: "relay_bytes_total", Help: "Bytes that the relay passed on, by direction.", Counter: true, Label: "to",
			Values: func(f figures) map[string]float64 {
				return map[string]float64{"media": float64(f.relay.BytesToMedia), "clients": float64(f.relay.BytesToClients)}
			},
		},
		counter("relay_refusals_total", "Allocations, credentials, peers and frames that the relay refused.", func(f figures) uint64 {
			return f.relay.RefusedAllocations + f.relay.RefusedCredentials + f.relay.RefusedPeers + f.relay.RefusedFrames
		}),
	)
}

// countJoin tells the metrics how a first message was answered.
func (s *session) countJoin(first wire.Message, err error) {
	kind := "unknown"
	switch first.(type) {
	case *wire.Join:
		kind = "join"
	case *wire.Resume:
		kind = "resume"
	case *wire.Connect:
		kind = "connect"
	}
	code := metrics.CodeOK
	if err != nil {
		code = string(reply.Of(err).Code)
	}
	s.server.parts.Metrics.Joined(kind, code)
	if err == nil && kind != "connect" && !s.line.waits() {
		s.server.parts.Metrics.JoinTook(metrics.JoinAnswered, time.Since(s.began))
	}
}

// countArrival tells the metrics how long it took to place the room, and then to attach.
func (s *session) countArrival(began, placed time.Time) {
	s.server.parts.Metrics.JoinTook(metrics.JoinPlaced, placed.Sub(began))
	s.server.parts.Metrics.JoinTook(metrics.JoinAttached, time.Since(placed))
}

// countWay tells the metrics of a report of a client's way of media.
func (s *session) countWay(path *wire.MediaPath) {
	if path == nil {
		return
	}
	way := metrics.WayNone
	switch path.Way {
	case wire.WayUDP:
		way = metrics.WayUDP
	case wire.WayTCP:
		way = metrics.WayTCP
	case wire.WayTURN:
		way = metrics.WayTURN
	}
	s.server.parts.Metrics.Way(way)
}

// countEnd tells the metrics of the end of a session that was admitted.
func (s *session) countEnd(how ending) {
	if s.admitted {
		s.server.parts.Metrics.Ended(strconv.Itoa(int(how.code)))
	}
}
