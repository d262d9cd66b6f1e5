package sfu

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/internal/metrics"
	"github.com/holdfast-rtc/holdfast/sfu/connection"
	"github.com/holdfast-rtc/holdfast/sfu/egress"
	"github.com/holdfast-rtc/holdfast/sfu/forward"
)

// NewMetrics registers what a media node counts as it happens.
func NewMetrics(r *metrics.Registry) *metrics.Media {
	var reasons []string
	for _, code := range slices.Sorted(maps.Keys(control.Refusal_name)) {
		if code != int32(control.Refusal_REFUSAL_UNSPECIFIED) {
			reasons = append(reasons, reasonOf(control.Refusal(code)))
		}
	}
	return r.NewMedia(append(reasons, reasonUnknown))
}

const reasonUnknown = "unknown"

// reasonOf names a refusal as the metrics do.
func reasonOf(code control.Refusal) string {
	name, known := control.Refusal_name[int32(code)]
	if !known || code == control.Refusal_REFUSAL_UNSPECIFIED {
		return reasonUnknown
	}
	return strings.ToLower(strings.TrimPrefix(name, "REFUSAL_"))
}

// surveyLimit bounds how long a scrape waits for busy rooms, which are then left out.
const surveyLimit = 500 * time.Millisecond

// survey is a count of the people and slots of all rooms at one moment.
type survey struct {
	shown forward.Shown
	// transports are connections by "udp", "tcp" and "none".
	udp, tcp, none int
	// The others are connections by what the client last reported, and by what the path was found to carry.
	loss     [4]int
	estimate [5]int
	// trips is the sum of the round trips in seconds of the measured connections.
	trips    float64
	measured int
	// silent rooms did not answer in time.
	silent int
}

// The classes of survey.loss and survey.estimate.
func lossClasses() []string { return []string{"under_1", "1_to_5", "5_to_15", "over_15"} }

func estimateClasses() []string {
	return []string{"unknown", "under_0.5", "0.5_to_1", "1_to_3", "over_3"}
}

func lossClass(lost float64) int {
	return classOf(lost, 0.01, 0.05, 0.15)
}

func estimateClass(bitsPerSecond uint64) int {
	if bitsPerSecond == 0 {
		return 0
	}
	return 1 + classOf(float64(bitsPerSecond), 500_000, 1_000_000, 3_000_000)
}

func classOf(value float64, bounds ...float64) int {
	for i, bound := range bounds {
		if value < bound {
			return i
		}
	}
	return len(bounds)
}

func (s *survey) connection(c *connection.Connection) {
	switch c.Transport() {
	case "udp":
		s.udp++
	case "tcp":
		s.tcp++
	default:
		s.none++
		return
	}
	s.estimate[estimateClass(c.Path().Target())]++
	if told := c.Reported(); told.RoundTrip > 0 {
		s.loss[lossClass(told.Lost)]++
		s.trips += told.RoundTrip.Seconds()
		s.measured++
	}
}

func (s *survey) add(t survey) {
	s.shown = s.shown.Plus(t.shown)
	s.udp, s.tcp, s.none = s.udp+t.udp, s.tcp+t.tcp, s.none+t.none
	for i := range s.loss {
		s.loss[i] += t.loss[i]
	}
	for i := range s.estimate {
		s.estimate[i] += t.estimate[i]
	}
	s.trips, s.measured = s.trips+t.trips, s.measured+t.measured
}

// survey asks every room at once, in its loop and in its media loop, each of which spends microseconds on it.
func (n *Node) survey(limit time.Duration) survey {
	rooms := n.openRooms()
	answers := make(chan survey, 2*len(rooms))
	var sum survey
	waiting := 0
	for _, r := range rooms {
		if r.tryPost(func() { answers <- r.survey() }) {
			waiting++
		} else {
			sum.silent++
		}
		if r.media.TryShown(func(shown forward.Shown) { answers <- survey{shown: shown} }) {
			waiting++
		} else {
			sum.silent++
		}
	}
	late := time.NewTimer(limit)
	defer late.Stop()
	for ; waiting > 0; waiting-- {
		select {
		case one := <-answers:
			sum.add(one)
		case <-late.C:
			sum.silent += waiting
			return sum
		}
	}
	return sum
}

// survey is called by the room's loop.
func (r *room) survey() survey {
	var s survey
	for _, p := range r.peers {
		for _, c := range []*connection.Connection{p.connection, p.uplink} {
			if c != nil && c.Alive() {
				s.connection(c)
			}
		}
	}
	return s
}

// figures is what Prometheus reads of a media node.
type figures struct {
	load       Load
	socket     egress.Stats
	streams    int
	rooms      forward.Stats
	survey     survey
	limited    float64
	limitedFor time.Duration
	draining   bool
	watchers   int
	busy       int
}

func (n *Node) figures() figures {
	now := figures{load: n.Load(), socket: n.socket.Stats(), streams: n.socket.Streams(), watchers: n.Watchers(), draining: n.DrainState().Draining}
	at := time.Now()
	n.mu.Lock()
	now.rooms = n.retired
	for r := range n.serving {
		now.rooms = now.rooms.Plus(r.media.Stats())
		now.busy++
	}
	now.limitedFor = n.limitedFor
	if !n.limitedSince.IsZero() {
		now.limitedFor += at.Sub(n.limitedSince)
		now.limited = 1
	}
	n.mu.Unlock()
	now.survey = n.survey(surveyLimit)
	return now
}

// reading is one metric of the figures.
type reading = metrics.Reading[figures]

func gauge(name, help string, value func(*figures) float64) reading {
	return reading{Name: name, Help: help, Value: func(f figures) float64 { return value(&f) }}
}

func counter(name, help string, value func(*figures) uint64) reading {
	return reading{Name: name, Help: help, Counter: true, Value: func(f figures) float64 { return float64(value(&f)) }}
}

// by is a gauge for each value of a label.
func by(name, help, label string, values func(*figures) map[string]float64) reading {
	return reading{Name: name, Help: help, Label: label, Values: func(f figures) map[string]float64 { return values(&f) }}
}

// Measure has Prometheus read this node's figures. No packet costs more for it.
func (n *Node) Measure(r *metrics.Registry) {
	metrics.Read(r, n.figures, slices.Concat(loadReadings(), packetReadings(), n.feedbackReadings(), n.dataReadings(), surveyReadings())...)
}

func loadReadings() []reading {
	return []reading{
		gauge("rooms", "Open rooms of this media node.", func(f *figures) float64 { return float64(f.load.Rooms) }),
		gauge("rooms_serving", "The same with rooms that were handed over and still send to people on their way.", func(f *figures) float64 { return float64(f.busy) }),
		gauge("peers", "People in the open rooms, with those who are expected back.", func(f *figures) float64 { return float64(f.load.Peers) }),
		gauge("egress_bits_per_second", "Egress of media as headroom is judged by it: what is measured, and what is reserved for people who are expected.", func(f *figures) float64 { return float64(f.load.EgressBitsPerSecond) }),
		gauge("egress_packets_per_second", "The same in packets.", func(f *figures) float64 { return float64(f.load.EgressPacketsPerSecond) }),
		gauge("egress_ceiling_bits_per_second", "--egress-bits of this media node.", func(f *figures) float64 { return float64(f.load.CeilingBitsPerSecond) }),
		gauge("egress_ceiling_packets_per_second", "--egress-packets of this media node.", func(f *figures) float64 { return float64(f.load.CeilingPacketsPerSecond) }),
		gauge("egress_floor_bits_per_second", "Egress if all pictures were at their lowest layers.", func(f *figures) float64 { return float64(f.load.Floor.BitsPerSecond) }),
		gauge("limited", "1 while pictures are held back because the node is near a ceiling or out of processor time.", func(f *figures) float64 { return f.limited }),
		{Name: "limited_seconds_total", Help: "Time for which pictures were held back.", Counter: true, Value: func(f figures) float64 { return f.limitedFor.Seconds() }},
		gauge("draining", "1 while this media node drains.", func(f *figures) float64 {
			if f.draining {
				return 1
			}
			return 0
		}),
		gauge("watchers", "Signaling nodes that watch this media node. 0 means that nobody would notice its death by its stream.", func(f *figures) float64 { return float64(f.watchers) }),
	}
}

func packetReadings() []reading {
	dropped := by("packets_dropped_total", "Packets that should have been forwarded and were not, by reason: queue_full and late mean too little processor time, write the kernel's refusal, malformed a client's fault.", "reason", func(f *figures) map[string]float64 {
		d := f.rooms.Drops
		return map[string]float64{"queue_full": float64(d.QueueFull), "late": float64(d.Late), "write": float64(d.Write), "malformed": float64(d.Malformed)}
	})
	dropped.Counter = true
	return []reading{
		dropped,
		counter("egress_packets_total", "Packets that left the media sockets.", func(f *figures) uint64 { return f.socket.Packets }),
		counter("egress_bytes_total", "Bytes that left the media sockets, without IP, UDP and TCP headers.", func(f *figures) uint64 { return f.socket.Bytes }),
		counter("egress_calls_total", "System calls that sent them.", func(f *figures) uint64 { return f.socket.Calls }),
		counter("egress_errors_total", "Packets that the kernel refused.", func(f *figures) uint64 { return f.socket.Errors }),
		counter("egress_tcp_dropped_total", "Packets that were left out because a client's TCP connection was too slow.", func(f *figures) uint64 { return f.socket.Dropped }),
		counter("packets_in_total", "RTP packets of clients that reached a room.", func(f *figures) uint64 { return f.rooms.PacketsIn }),
		counter("packets_forwarded_total", "RTP packets that were forwarded, once for each receiver.", func(f *figures) uint64 { return f.rooms.PacketsForwarded }),
		counter("packets_retransmitted_total", "Packets that were sent again because a client asked for them.", func(f *figures) uint64 { return f.rooms.Retransmitted }),
		counter("packets_not_retransmitted_total", "Packets that a client asked for and did not get: too old, or beyond what its path carries.", func(f *figures) uint64 { return f.rooms.RetransmitMisses }),
		counter("packets_probe_total", "Packets that were sent to find out what a path carries.", func(f *figures) uint64 { return f.rooms.ProbePackets }),
	}
}

func (n *Node) feedbackReadings() []reading {
	return []reading{
		counter("plis_sent_total", "Keyframes that this node asked publishers for.", func(f *figures) uint64 { return f.rooms.KeyframeRequests }),
		counter("plis_received_total", "Keyframes that receivers asked for (PLI and FIR).", func(*figures) uint64 { return n.tally.PLIsReceived.Load() }),
		counter("nacks_sent_total", "Packets that this node asked publishers for again.", func(*figures) uint64 { return n.tally.NACKsSent.Load() }),
		counter("nacks_received_total", "Packets that receivers asked for again.", func(*figures) uint64 { return n.tally.NACKsReceived.Load() }),
		counter("uplink_packets_expected_total", "Packets that publishers sent, as their sequence numbers show.", func(*figures) uint64 { return n.tally.Expected.Load() }),
		counter("uplink_packets_lost_total", "Those of them that did not arrive at first.", func(*figures) uint64 { return n.tally.Lost.Load() }),
		counter("media_connections_failed_total", "Media connections that failed while the client was in the room: it was silent for 30 s, DTLS failed, or the client closed it.", func(*figures) uint64 { return n.tally.Failed.Load() }),
	}
}

func (n *Node) dataReadings() []reading {
	dropped := by("data_dropped_total", "Messages on data channels that were dropped, by reason: slow (the receiver did not take those before) and missed (it has no channel) once for each receiver, flood (beyond the bound of a person or a room), link (to another node of the room) and refused (not allowed, or unreadable) once.", "reason", func(*figures) map[string]float64 {
		m := &n.messages
		return map[string]float64{
			"slow": float64(m.Slow.Load()), "missed": float64(m.Missed.Load()), "flood": float64(m.Flooded.Load()), "link": float64(m.Unspread.Load()), "refused": float64(m.Refused.Load()),
		}
	})
	dropped.Counter = true
	return []reading{
		dropped,
		counter("data_messages_total", "Messages that were sent over data channels, once for each receiver.", func(*figures) uint64 { return n.messages.Sent.Load() }),
	}
}

func surveyReadings() []reading {
	return []reading{
		by("media_connections", "Media connections, by what carries them to this node: udp, tcp, or none before media can be sent. A relay's are udp.", "transport", func(f *figures) map[string]float64 {
			return map[string]float64{"udp": float64(f.survey.udp), "tcp": float64(f.survey.tcp), "none": float64(f.survey.none)}
		}),
		by("slots", "Slots of receivers by what they show: sound, pictures of up to 180, 360 or 720 lines, larger, unknown (before a keyframe), waiting (for a keyframe, the path, or the node's ceiling).", "shows", func(f *figures) map[string]float64 {
			s := f.survey.shown
			return map[string]float64{
				"sound": float64(s.Sound), "180": float64(s.To180), "360": float64(s.To360), "720": float64(s.To720), "larger": float64(s.Larger), "unknown": float64(s.Unknown), "waiting": float64(s.Waiting),
			}
		}),
		gauge("receivers_short", "Receivers whose path carries less than what they would be shown.", func(f *figures) float64 { return float64(f.survey.shown.Short) }),
		by("downlink_connections", "Media connections by the loss in percent that the client last reported of its worst stream.", "loss", func(f *figures) map[string]float64 { return byClass(lossClasses(), f.survey.loss[:]) }),
		by("path_connections", "Media connections by what the path to the client is estimated to carry, in Mbit/s.", "mbit", func(f *figures) map[string]float64 { return byClass(estimateClasses(), f.survey.estimate[:]) }),
		gauge("round_trip_mean_seconds", "Mean round trip of the media connections that reported one; 0 without any.", func(f *figures) float64 { return f.survey.trips / float64(max(f.survey.measured, 1)) }),
		gauge("rooms_unsurveyed", "Loops of rooms that were too busy to be counted in slots, connections and round trips.", func(f *figures) float64 { return float64(f.survey.silent) }),
	}
}

func byClass(classes []string, counts []int) map[string]float64 {
	values := make(map[string]float64, len(classes))
	for i, class := range classes {
		values[class] = float64(counts[i])
	}
	return values
}
