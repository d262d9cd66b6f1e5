package forward

import (
	"maps"
	"slices"
	"time"

	"github.com/pion/rtcp"
)

type subscriber struct {
	peer  PeerID
	slots []*Slot
	wants []Want
	// unheard is the sound that the page does not want, nil if it wants all of it.
	unheard map[trackKey]bool
	hasView bool
	changed bool
	// apart: a speaker is heard in another stream than the one with the speaker's picture.
	apart bool
	// moved: what the slots show differs from the table that was stored.
	moved bool

	sounds, pictures group

	// budget is in bits per second; 0 is unlimited.
	budget uint64
	pace   pacer
	// short is the rate, in bits per second, that would be sent without a budget; 0 if the budget suffices.
	short uint64

	lacks []Lack

	// roundTrip is 0 while it is unknown.
	roundTrip time.Duration

	asks map[trackKey]keyframeBudget

	// remembered is what the next slot of a mid will show.
	remembered map[string]Entry
	// holds says until when the place of an absent publisher is kept.
	holds map[trackKey]time.Time
}

type group struct {
	slots []*Slot
	// scarce: there are more candidates than slots, so that the order of candidates matters. With a view, the candidates are what the
	// page wants.
	scarce bool
}

func (sub *subscriber) group(kind Kind) *group {
	if kind == KindAudio {
		return &sub.sounds
	}
	return &sub.pictures
}

// prefersSpeakers reports whether speakers get the slots of a kind first. With a view, the page decides who is shown.
func (sub *subscriber) prefersSpeakers(kind Kind) bool { return kind == KindAudio || !sub.hasView }

// waitsForSpeakers reports whether the slots may change when other people speak.
func (sub *subscriber) waitsForSpeakers() bool {
	return sub.sounds.scarce || sub.pictures.scarce && sub.prefersSpeakers(KindVideo)
}

const maxRemembered = 256

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

// wish is what the page wants of an entry: its rank in the page's order, and its height.
type wish struct {
	rank, height int
	hidden       bool
}

func unheardOf(wants []Want) (unheard map[trackKey]bool) {
	for _, w := range wants {
		if w.Source.Kind() == KindAudio && w.hidden() {
			if unheard == nil {
				unheard = map[trackKey]bool{}
			}
			unheard[trackKey{peer: w.Peer, source: w.Source}] = true
		}
	}
	return unheard
}

// wishFor returns what the page wants of an entry. Without a view it wants the lowest layer. Sound is never hidden.
func (sub *subscriber) wishFor(e Entry) wish {
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

func (sub *subscriber) linkWithinStream(s *Slot) {
	for _, other := range sub.slots {
		if s.cfg.Stream != "" && other.cfg.Stream == s.cfg.Stream && other.cfg.Kind != s.cfg.Kind && other.beside == nil {
			s.beside, other.beside = other, s
			return
		}
	}
}

func (sub *subscriber) slotBesidePicture(e Entry) *Slot {
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

// Every viewer of a picture is sent the keyframes that one viewer asks for. So a subscriber may ask for keyframeBurst at once, and for another
// one each keyframeEvery.
const (
	keyframeBurst = 6
	keyframeEvery = 3 * time.Second
	// A subscriber's requests are counted for so many pictures, before old counts are forgotten.
	keyframeKinds = 256
)

type keyframeBudget struct {
	// spent is keyframeEvery for each request, less the time since.
	spent time.Duration
	at    time.Time
}

func (b *keyframeBudget) left(now time.Time) time.Duration {
	return max(b.spent-now.Sub(b.at), 0)
}

// mayAsk takes one keyframe off the subscriber's budget for a picture. Only the request that makes the publisher send a keyframe counts, so a
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

func (sub *subscriber) doesLack(p *publication) bool {
	slots := sub.pictures.slots
	return !p.muted && len(p.layers) > 0 && sub.peer != p.key.peer && len(slots) > 0 && slots[0].ready && !slots[0].canReceive(p.layers[0])
}

func (sub *subscriber) resendAfter() time.Duration {
	if sub.roundTrip <= 0 {
		return resendAfter
	}
	return min(max(sub.roundTrip, leastResendAfter), mostResendAfter)
}

// CNAME names one clock for all streams (RFC 3550 section 6.5.1).
const CNAME = "holdfast"

// sendReports sends what is due now or soon as one compound (RFC 3550 section 6.1).
func (sub *subscriber) sendReports(now time.Time) {
	first := slices.IndexFunc(sub.slots, func(s *Slot) bool { return s.reportDue(now, 0) })
	if first < 0 {
		return
	}
	s := sub.slots[first]
	names := &rtcp.SourceDescription{}
	var packets []rtcp.Packet
	for _, other := range sub.slots {
		// Slots of a connection that is being replaced have another transport.
		same := other == s || s.cfg.Path != nil && other.cfg.Path == s.cfg.Path
		if !same || !other.reportDue(now, reportInterval/2) || len(names.Chunks) == maxNames {
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

// probePadding is the most padding that an RTP packet can have (RFC 3550 section 5.1).
const probePadding = 255

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
		s.writePadding()
	}
}

// releasePaced forwards what the path carries by now. handling is set to the layer of each packet, for
// Room.catchPacket.
func (sub *subscriber) releasePaced(now time.Time, handling **Layer) {
	q := &sub.pace
	perSecond := paceFactor * float64(sub.budget) / 8
	q.bytes = min(q.bytes+perSecond*min(now.Sub(q.at), time.Second).Seconds(), max(perSecond*paceTick.Seconds(), paceBurst))
	q.at = now
	sent := 0
	defer func() {
		for _, e := range q.queue[:sent] {
			e.packet.Release()
		}
		n := copy(q.queue, q.queue[sent:])
		clear(q.queue[n:])
		q.queue = q.queue[:n]
	}()
	for _, e := range q.queue {
		late := now.Sub(e.since) > paceWait || len(q.queue)-sent > pacePackets
		if q.bytes < 0 && sub.budget != 0 && !late {
			return
		}
		sent++
		*handling = e.packet.layer
		e.slot.forward(e.packet)
	}
}

func (sub *subscriber) dropPaced() {
	for _, e := range sub.pace.queue {
		e.packet.Release()
	}
	sub.pace.queue = nil
}

// addSlot lets a slot show what an absent slot of its mid is remembered to show.
func (sub *subscriber) addSlot(s *Slot) {
	s.entry = Entry{Mid: s.cfg.Mid, Kind: s.cfg.Kind}
	if e, ok := sub.remembered[s.cfg.Mid]; ok && e.Kind == s.cfg.Kind {
		s.entry = e
		s.entry.Paused = false
	}
	delete(sub.remembered, s.cfg.Mid)
	s.formats = formats(s.cfg.Codecs)
	if s.cfg.Path != nil {
		sub.budget = s.cfg.Path.Target()
	}
	sub.slots = append(sub.slots, s)
	group := sub.group(s.cfg.Kind)
	group.slots = append(group.slots, s)
	sub.linkWithinStream(s)
	sub.changed = true
}

// removeSlot remembers what the slot showed, for the next one of its mid.
func (sub *subscriber) removeSlot(s *Slot) {
	i := slices.Index(sub.slots, s)
	if i < 0 {
		return
	}
	sub.slots = slices.Delete(sub.slots, i, i+1)
	group := sub.group(s.cfg.Kind)
	group.slots = slices.DeleteFunc(group.slots, func(other *Slot) bool { return other == s })
	if s.beside != nil {
		s.beside.beside, s.beside = nil, nil
	}
	if len(sub.remembered) < maxRemembered {
		sub.remembered[s.cfg.Mid] = s.entry
	}
	sub.changed = true
}

func (sub *subscriber) dropHolds(peer PeerID) {
	before := len(sub.holds)
	maps.DeleteFunc(sub.holds, func(key trackKey, _ time.Time) bool { return key.peer == peer })
	sub.changed = sub.changed || len(sub.holds) != before
}

func (sub *subscriber) expireHolds(now time.Time) {
	before := len(sub.holds)
	maps.DeleteFunc(sub.holds, func(_ trackKey, until time.Time) bool { return !until.After(now) })
	if len(sub.holds) != before {
		sub.changed = true
	}
}
