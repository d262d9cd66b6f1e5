// Package share divides what a media node may send among its rooms while they would send more: it chooses each room's
// forward.Level. It is arithmetic on the caller's clock; it knows no room, no socket and no gossip.
//
// It promises:
//   - When more would be sent than the node may, the largest pictures of all rooms go first, and of those of one size the rooms that
//     send most of them, within one call.
//   - Sound is never held back. For want of processor time the lowest layer of a picture is not either, unless nearly all is sound.
//   - All of it comes back by itself, slowly: each picture that grows costs a keyframe.
package share

import (
	"cmp"
	"slices"
	"time"

	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/sfu/forward"
)

// Every is how often to call Next: as often as rooms compute their demand.
const Every = 250 * time.Millisecond

const (
	// Shares of the ceiling. Above tooMuch something goes at once; below giveUpTo more is sent. What is sent stays up
	// to keepUpTo, so that small variations change nothing.
	tooMuch  = 0.96
	keepUpTo = 0.92
	giveUpTo = 0.88
	// Levels last so long unless there is too much: the last change's keyframes are over then, and measured.
	changeAfter = 2 * time.Second
	// Share of the ceiling that one change may add.
	raiseAtOnce = 0.10

	// Weights of measurements above and below the estimate; of processor time, which much else uses.
	quick, slow, calm = 0.5, 0.1, 0.05
	// Part of the ceiling that must be in use for a measurement.
	leastShare = 0.05
	// Bits of the largest packet of a picture.
	largePacket = 1200 * 8
	// Egress over layers' cost: less than 1 because a socket's counters leave out IP headers; more with retransmissions
	// and small packets.
	leastScale, mostScale = 0.8, 8
)

// Room is what one room would send.
type Room struct {
	ID     ring.RoomID
	Demand forward.Demand
	Level  forward.Level // Next changes it
}

// Used has shares of the ceiling: of egress in its scarcer dimension, and of processor time.
type Used struct{ Egress, Processor float64 }

// Sharer is for one node. It is not safe for concurrent use.
type Sharer struct {
	egress, processor float64 // share of the ceiling for one bit of demand
	changed           time.Time
	since             time.Time
}

// Since is when the node began to hold pictures back; zero: it does not.
func (s *Sharer) Since() time.Time { return s.since }

// Newcomer is a new room's level.
func (s *Sharer) Newcomer() forward.Level {
	if s.since.IsZero() {
		return forward.AllLevels
	}
	return forward.LowestLevels
}

// Next sets the rooms' levels.
func (s *Sharer) Next(now time.Time, used Used, ceiling headroom.Egress, rooms []Room) {
	s.learn(used, ceiling, rooms)
	scale := max(s.egress, s.processor)
	var sound, held float64
	for i := range rooms {
		sound += scale * float64(rooms[i].Demand.Sound)
		held += scale * float64(rooms[i].Demand.UpTo(rooms[i].Level))
	}
	if held > tooMuch || !s.since.IsZero() && now.Sub(s.changed) >= changeAfter {
		s.changed = now
		change(rooms, divide(rooms, s.steps(rooms), sound), scale)
	}
	s.note(now, rooms)
}

func (s *Sharer) note(now time.Time, rooms []Room) {
	switch less := slices.ContainsFunc(rooms, func(r Room) bool { return r.Demand.UpTo(r.Level) < r.Demand.UpTo(forward.AllLevels) }); {
	case !less:
		s.since = time.Time{}
	case s.since.IsZero():
		s.since = now
	}
}

// learn measures the cost of a bit of demand.
func (s *Sharer) learn(used Used, ceiling headroom.Egress, rooms []Room) {
	least := max(1/float64(ceiling.BitsPerSecond), 1/float64(ceiling.PacketsPerSecond)/largePacket)
	aimed := 0.0
	for i := range rooms {
		aimed += float64(rooms[i].Demand.Aimed)
	}
	if aimed*least >= leastShare {
		weight := slow
		if used.Egress/aimed > s.egress {
			weight = quick
		}
		s.egress += weight * (used.Egress/aimed - s.egress)
		s.processor += calm * (used.Processor/aimed - s.processor)
	}
	s.egress = min(max(s.egress, leastScale*least), mostScale*least)
}

// step is one level of one room.
type step struct {
	room  int
	level forward.Level
	held  bool    // sent now
	adds  float64 // share of the ceiling
}

// steps come in the order of giving: smallest pictures first, then those sent now, because changes cost keyframes, then
// rooms that send few.
func (s *Sharer) steps(rooms []Room) []step {
	var all []step
	for i := range rooms {
		for level := range forward.Level(forward.Levels) {
			bits := rooms[i].Demand.Steps[level]
			if bits == 0 {
				continue
			}
			scale := s.egress
			if level > forward.LowestLevels {
				scale = max(scale, s.processor)
			}
			all = append(all, step{i, level, level <= rooms[i].Level, scale * float64(bits)})
		}
	}
	slices.SortFunc(all, func(a, b step) int {
		return cmp.Or(cmp.Compare(a.level, b.level), heldFirst(a, b), cmp.Compare(a.adds, b.adds), cmp.Compare(rooms[a.room].ID, rooms[b.room].ID))
	})
	return all
}

func heldFirst(a, b step) int {
	switch {
	case a.held == b.held:
		return 0
	case a.held:
		return -1
	default:
		return 1
	}
}

// divide gives what fits above total. A room refused one step gets none beyond.
func divide(rooms []Room, steps []step, total float64) []forward.Level {
	levels := slices.Repeat([]forward.Level{forward.AllLevels}, len(rooms))
	for _, st := range steps {
		line := giveUpTo
		if st.held {
			line = keepUpTo
		}
		switch {
		case levels[st.room] < st.level: // refused before
		case total+st.adds <= line:
			total += st.adds
		default:
			levels[st.room] = st.level - 1
		}
	}
	return levels
}

// change raises only so many levels at once, the lowest first.
func change(rooms []Room, levels []forward.Level, scale float64) {
	order := make([]int, len(rooms))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(rooms[a].Level, rooms[b].Level) })
	added := 0.0
	for _, i := range order {
		adds := scale * (float64(rooms[i].Demand.UpTo(levels[i])) - float64(rooms[i].Demand.UpTo(rooms[i].Level)))
		if adds > 0 && added > 0 && added+adds > raiseAtOnce {
			continue
		}
		added += max(adds, 0)
		rooms[i].Level = levels[i]
	}
}
