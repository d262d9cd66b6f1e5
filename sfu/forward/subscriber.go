package forward

import (
	"maps"
	"slices"
	"time"

	"github.com/pion/rtcp"
)

type subscriber struct {
	peer    PeerID
	slots   []*Slot
	wants   []Want
	hasView bool
	changed bool
	apart   bool // hears a speaker in another stream than it sees
	moved   bool // differs from what was told

	sounds, pictures group

	budget uint64 // bits per second, 0: unlimited
	pace   pacer
	short  uint64 // bits per second without a budget; 0: the budget suffices

	lacks []Lack

	roundTrip time.Duration // 0: unknown

	asks map[trackKey]keyframeBudget

	// remembered is what a mid's absent slot shows.
	remembered map[string]Entry
	// holds has when an absent publisher's place lapses.
	holds map[trackKey]time.Time
}

type group struct {
	slots  []*Slot
	scarce bool // more candidates than slots
}

func (sub *subscriber) group(kind Kind) *group {
	if kind == KindAudio {
		return &sub.sounds
	}
	return &sub.pictures
}

func (sub *subscriber) setTable(table []Entry, until time.Time) {
	for _, e := range table[:min(len(table), maxRemembered)] {
		sub.remembered[e.Mid] = e
		if e.Peer != "" {
			sub.holds[e.key()] = until
		}
		for _, s := range sub.slots {
			if s.cfg.Mid == e.Mid && s.cfg.Kind == e.Kind {
				s.entry = e
				s.entry.Paused = false
				s.source = nil
			}
		}
	}
}

func (sub *subscriber) shows(key trackKey) bool {
	return slices.ContainsFunc(sub.slots, func(s *Slot) bool { return s.entry.Peer != "" && s.entry.key() == key })
}

func (sub *subscriber) join(s *Slot) {
	for _, other := range sub.slots {
		if s.cfg.Stream != "" && other.cfg.Stream == s.cfg.Stream && other.cfg.Kind != s.cfg.Kind && other.beside == nil {
			s.beside, other.beside = other, s
			return
		}
	}
}

func (sub *subscriber) heardBeside(e Entry) *Slot {
	if e.Peer == "" {
		return nil
	}
	for _, s := range sub.pictures.slots {
		if s.entry.Peer == e.Peer && s.entry.key().soundOf() == e.key() {
			return s.beside
		}
	}
	return nil
}

func (sub *subscriber) doesLack(p *publication) bool {
	slots := sub.pictures.slots
	return !p.muted && len(p.layers) > 0 && sub.peer != p.key.peer && len(slots) > 0 && slots[0].ready && !slots[0].takes(p.layers[0])
}

// Everybody gets the keyframes that one viewer asks for, so a viewer has so many of a picture, and another one each keyframeEvery.
const (
	keyframeBurst = 6
	keyframeEvery = 3 * time.Second
	keyframeKinds = 256 // pictures of which a viewer's requests are counted, before those counted long ago are forgotten
)

type keyframeBudget struct {
	spent time.Duration // keyframeEvery for each
	at    time.Time
}

func (b *keyframeBudget) left(now time.Time) time.Duration {
	return max(b.spent-now.Sub(b.at), 0)
}

// mayAsk takes one keyframe off the viewer's budget of a picture. Only the request that makes the publisher send a keyframe counts, so a
// publisher who does not answer is asked as often as ever.
func (sub *subscriber) mayAsk(key trackKey, now time.Time) bool {
	b, known := sub.asks[key]
	if !known && len(sub.asks) >= keyframeKinds {
		maps.DeleteFunc(sub.asks, func(_ trackKey, b keyframeBudget) bool { return b.left(now) == 0 })
	}
	spent := b.left(now) + keyframeEvery
	if spent > keyframeBurst*keyframeEvery {
		return false
	}
	sub.asks[key] = keyframeBudget{spent, now}
	return true
}

// Without a view the lowest layer is wanted. Sound is never hidden.
func (sub *subscriber) wanted(e Entry) wish {
	if !sub.hasView || e.Kind != KindVideo {
		return wish{}
	}
	for i, w := range sub.wants {
		if w.Peer == e.Peer && w.Source == e.Source {
			return wish{rank: i, height: w.Height, hidden: w.hidden()}
		}
	}
	return wish{rank: len(sub.wants)}
}

func (sub *subscriber) dropPaced() {
	for _, e := range sub.pace.queue {
		e.packet.Release()
	}
	sub.pace.queue = nil
}

func (sub *subscriber) probe() {
	if sub.short == 0 {
		return
	}
	i := slices.IndexFunc(sub.slots, (*Slot).canProbe)
	if i < 0 {
		return
	}
	s := sub.slots[i]
	paused := slices.ContainsFunc(sub.slots, func(s *Slot) bool { return s.paused })
	for bytes := s.cfg.Path.Probe(sub.short, paused); bytes > 0; bytes -= probePadding + wireOverhead {
		s.pad()
	}
}

// sendReports sends what is due now or soon as one compound (RFC 3550 section 6.1).
func (sub *subscriber) sendReports(now time.Time) {
	first := slices.IndexFunc(sub.slots, func(s *Slot) bool { return s.due(now, 0) })
	if first < 0 {
		return
	}
	s := sub.slots[first]
	names := &rtcp.SourceDescription{}
	var packets []rtcp.Packet
	for _, other := range sub.slots {
		// A connection being replaced has its own slots.
		same := other == s || s.cfg.Path != nil && other.cfg.Path == s.cfg.Path
		if !same || !other.due(now, reportInterval/2) || len(names.Chunks) == maxNames {
			continue
		}
		packets = append(packets, other.senderReport(now))
		names.Chunks = append(names.Chunks, rtcp.SourceDescriptionChunk{
			Source: other.cfg.SSRC, Items: []rtcp.SourceDescriptionItem{{Type: rtcp.SDESCNAME, Text: CNAME}},
		})
	}
	if err := s.cfg.WriteRTCP(append(packets, names)); err != nil {
		s.room.log.Debug("sender reports not sent", "peer", s.cfg.Peer, "error", err)
	}
}

func (sub *subscriber) resendAfter() time.Duration {
	if sub.roundTrip <= 0 {
		return resendAfter
	}
	return min(max(sub.roundTrip, leastResendAfter), mostResendAfter)
}

const (
	reportInterval = time.Second
	firstReport    = 200 * time.Millisecond // for lip-sync
	maxNames       = 31                     // RTCP's limit
)

// CNAME names one clock for all streams (RFC 3550 section 6.5.1).
const CNAME = "holdfast"
