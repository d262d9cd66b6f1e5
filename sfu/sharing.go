package sfu

import (
	"runtime"
	"time"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/sfu/forward"
	"github.com/holdfast-rtc/holdfast/sfu/share"
)

const (
	// Longer than a move's keyframes.
	limitedToldAfter = 2 * time.Second
	// Above it packets wait.
	processorCeiling = 0.95
	// Bits of a packet of sound, and at least of a lowest layer's.
	soundPacketBits, lowestPacketBits = 800, 4000
)

// Only Run uses sharing.
type sharing struct {
	sharer    share.Sharer
	sent      meter
	processor time.Duration // so far
	at        time.Time
	busy      float64 // of all cores
}

// limit is what Node.share knows of a room.
type limit struct {
	begun bool
	since time.Time // zero: none are held back
	told  bool
}

func (n *Node) share(now time.Time) {
	s, ceiling := &n.sharing, n.ceiling()
	rooms := n.openRooms()
	shared := make([]share.Room, len(rooms))
	for i, r := range rooms {
		shared[i] = share.Room{ID: r.id, Demand: r.media.Demand(), Level: r.media.Level(), New: !r.limit.begun}
		r.limit.begun = true
		if now.Sub(r.opened) < share.Settles {
			shared[i].Comes = r.comes
		}
	}
	was := s.sharer.Since()
	s.sharer.Next(now, s.used(n.socket.Stats().Bytes*8, n.socket.Stats().Packets, now, ceiling), ceiling, shared)
	for i, r := range rooms {
		r.media.SetLevel(shared[i].Level)
		r.tellLimited(&shared[i].Demand, now)
	}
	n.mu.Lock()
	for i, r := range rooms {
		r.floor = floorOf(&shared[i].Demand)
	}
	n.limitedSince = s.sharer.Since()
	n.mu.Unlock()
	switch since := s.sharer.Since(); {
	case was.IsZero() && !since.IsZero():
		n.log.Warn("pictures are held back: the node is near its ceiling", "rooms", len(rooms), "egress", s.sent.rate.String(), "ceiling", ceiling.String(), "processor", s.busy)
	case !was.IsZero() && since.IsZero():
		n.log.Info("no picture is held back any more", "rooms", len(rooms), "egress", s.sent.rate.String(), "took", now.Sub(was).Round(time.Second).String())
	}
}

// newcomer needs mu. A room that begins adds little at first: its people come one by one.
func (n *Node) newcomer(a attachment, now time.Time) (level forward.Level, comes float64) {
	if !a.running() {
		return share.Newcomer(!n.limitedSince.IsZero(), 0), 0
	}
	level = share.Newcomer(!n.limitedSince.IsZero(), n.egressNow(now).Plus(a.cost()).Share(n.ceiling()))
	if level == forward.AllLevels {
		return level, a.cost().Share(n.ceiling())
	}
	return level, a.least().Share(n.ceiling())
}

// used returns shares of the ceiling.
func (s *sharing) used(bits, packets uint64, now time.Time, ceiling headroom.Egress) share.Used {
	rate := s.sent.observe(headroom.Egress{BitsPerSecond: bits, PacketsPerSecond: packets}, now)
	if spent, ok := processorTime(); ok && now.Sub(s.at) >= loadWindow/2 {
		if !s.at.IsZero() {
			s.busy = (spent - s.processor).Seconds() / now.Sub(s.at).Seconds() / float64(runtime.GOMAXPROCS(0))
		}
		s.at, s.processor = now, spent
	}
	return share.Used{Egress: rate.Share(ceiling), Processor: s.busy / processorCeiling}
}

// tellLimited tells lasting changes, without blocking.
func (r *room) tellLimited(d *forward.Demand, now time.Time) {
	l := &r.limit
	switch all := d.UpTo(r.media.Level()) == d.UpTo(forward.AllLevels); {
	case all:
		l.since = time.Time{}
	case l.since.IsZero():
		l.since = now
	}
	limited := !l.since.IsZero() && (l.told || now.Sub(l.since) >= limitedToldAfter)
	if limited == l.told {
		return
	}
	select {
	case r.tasks <- func() {
		r.limited = limited
		for _, p := range r.peers {
			r.send(p, &control.PeerEvent{Event: &control.PeerEvent_Limited{Limited: &control.Limited{Limited: limited}}})
		}
	}:
		l.told = limited
	default: // at the next call
	}
}

func floorOf(d *forward.Demand) headroom.Egress {
	pictures := d.UpTo(forward.LowestLevels) - d.Sound
	return headroom.Egress{BitsPerSecond: d.Sound + pictures, PacketsPerSecond: d.Sound/soundPacketBits + pictures/lowestPacketBits}
}

func (n *Node) openRooms() []*room {
	n.mu.Lock()
	defer n.mu.Unlock()
	rooms := make([]*room, 0, len(n.rooms))
	for _, r := range n.rooms {
		rooms = append(rooms, r)
	}
	return rooms
}

func (n *Node) ceiling() headroom.Egress {
	return headroom.Egress{BitsPerSecond: n.cfg.CeilingBitsPerSecond, PacketsPerSecond: n.cfg.CeilingPacketsPerSecond}
}
