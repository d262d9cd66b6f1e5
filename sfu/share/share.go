// Package share divides what a media node may send among its rooms while they would send more: it chooses each room's
// forward.Level. It is arithmetic on the caller's clock; it knows no room, no socket and no gossip.
//
// It promises:
//   - When more would be sent than the node may, the largest pictures of all rooms go first, and of those of one size the rooms that
//     send most of them, within one call.
//   - A room whose pictures would be too much when it comes begins with the lowest layers, before anything is measured.
//   - Sound is never held back. For want of processor time the lowest layer of a picture is not either, unless nearly all is sound.
//   - All of it comes back by itself, slowly: each picture that grows costs a keyframe.
package share

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/sfu/forward"
)

const (
	// Every is the interval at which the caller calls Next.
	Every = 250 * time.Millisecond
	// Settles is how long a new room may take to be measured.
	Settles = changeAfter
)

const (
	// These are shares of the ceiling. Above tooMuch the node holds pictures back. A division gives new pictures room up to giveUpTo (up to
	// tooMuch when all pictures have long seemed to fit), and
	// pictures that are already sent may stay up to keepUpTo.
	tooMuch  = 0.96
	keepUpTo = 0.92
	giveUpTo = 0.88
	// burst is the excess above tooMuch, in seconds of the ceiling, at which pictures are held back.
	burst = 0.03
	// Seconds of a growing picture.
	keyframe, firstKeyframe   = 0.25, 0.50
	fitsUpTo, fitsLooks       = 0.95, 8
	changeAfter               = 2 * time.Second
	failsWithin, mostPatience = 30 * time.Second, time.Minute
	// raiseAtOnce and returnAtOnce are the shares of the ceiling that one change may add, so that keyframes do not come all at once.
	raiseAtOnce, returnAtOnce = 0.10, 0.25

	quick, slow, calm       = 0.25, 0.15, 0.05
	steadiness, steadyLooks = 0.10, 6
	leastShare              = 0.05
	largePacket             = 1200 * 8
	// Socket counters leave out IP headers.
	leastScale, mostScale = 0.8, 8
)

// Room says what one room would send, and at what level. Next changes the level.
type Room struct {
	ID     ring.RoomID
	Demand forward.Demand
	Level  forward.Level
	// Comes is the share of the ceiling that a running room may take at first; else 0.
	Comes float64
	New   bool
}

// Used says how much of the ceiling the node uses, as shares. Egress is the share of the scarcer dimension.
type Used struct{ Egress, Processor float64 }

// Sharer divides what one node may send. It is not safe for concurrent use.
type Sharer struct {
	egress, processor float64 // share of the ceiling per bit
	aimed             float64 // bits
	steady            int     // looks

	excess   float64 // seconds of the ceiling; below 0: keyframes may still come
	all      float64
	fits     time.Time // since when all is below fitsUpTo
	patience time.Duration
	gave     time.Time
	changed  time.Time
	since    time.Time
}

// Since returns when pictures began to be held back, zero if none are.
func (s *Sharer) Since() time.Time { return s.since }

// Newcomer returns the level at which a new room begins. limited says that pictures are held back already. with is the share of the ceiling
// that the node is expected to use with all pictures of the new room.
func Newcomer(limited bool, with float64) forward.Level {
	if limited || with > tooMuch {
		return forward.LowestLevels
	}
	return forward.AllLevels
}

// Next sets the Level of each room from what the node uses. The caller calls it every Every, with all rooms of the node.
func (s *Sharer) Next(now time.Time, used Used, ceiling headroom.Egress, rooms []Room) {
	s.learn(used, ceiling, rooms)
	came := s.expect(now, rooms)
	scale := max(s.egress, s.processor)
	var sound, held, all float64
	for i := range rooms {
		coming := s.coming(&rooms[i])
		sound += scale*float64(rooms[i].Demand.Sound) + coming
		held += scale*float64(rooms[i].Demand.UpTo(rooms[i].Level)) + coming
		all += scale*float64(rooms[i].Demand.UpTo(forward.AllLevels)) + coming
	}
	s.weigh(now, held, all)
	switch waited := now.Sub(s.changed) >= changeAfter && !s.since.IsZero(); {
	case s.excess >= burst:
		s.backOff(now)
		s.change(now, rooms, sound, giveUpTo, raiseAtOnce)
	case came > 0 && held > tooMuch:
		s.change(now, rooms, sound, giveUpTo, raiseAtOnce)
	case waited && !s.fits.IsZero() && now.Sub(s.fits) >= max(s.patience, changeAfter):
		s.gave = now
		s.change(now, rooms, sound, tooMuch, returnAtOnce)
	case waited:
		s.change(now, rooms, sound, giveUpTo, raiseAtOnce)
	}
	s.excess -= firstKeyframe * came
	s.note(now, rooms)
}

func (s *Sharer) expect(now time.Time, rooms []Room) (came float64) {
	for i := range rooms {
		if rooms[i].New {
			came += rooms[i].Comes
		}
	}
	if came > 0 {
		s.changed = now
	}
	return came
}

func (s *Sharer) coming(r *Room) float64 {
	return max(r.Comes-max(s.egress, s.processor)*float64(r.Demand.UpTo(forward.AllLevels)), 0)
}

func (s *Sharer) weigh(now time.Time, held, all float64) {
	if more := (held - tooMuch) * Every.Seconds(); s.excess < 0 && now.Sub(s.changed) < changeAfter {
		s.excess += max(more, 0)
	} else {
		s.excess = max(max(s.excess, 0)+more, 0)
	}
	s.all += (all - s.all) / fitsLooks
	switch {
	case max(s.all, all) > fitsUpTo:
		s.fits = time.Time{}
	case s.fits.IsZero():
		s.fits = now
	}
}

func (s *Sharer) backOff(now time.Time) {
	if now.Sub(s.gave) < failsWithin {
		s.patience = min(2*max(s.patience, changeAfter), mostPatience)
	} else {
		s.patience = changeAfter
	}
}

func (s *Sharer) note(now time.Time, rooms []Room) {
	switch less := slices.ContainsFunc(rooms, func(r Room) bool { return r.Demand.UpTo(r.Level) < r.Demand.UpTo(forward.AllLevels) }); {
	case !less:
		s.since = time.Time{}
	case s.since.IsZero():
		s.since = now
	}
}

func (s *Sharer) learn(used Used, ceiling headroom.Egress, rooms []Room) {
	least := max(1/float64(ceiling.BitsPerSecond), 1/float64(ceiling.PacketsPerSecond)/largePacket)
	aimed, guessed := 0.0, 0.0
	for i := range rooms {
		aimed, guessed = aimed+float64(rooms[i].Demand.Aimed), guessed+float64(rooms[i].Demand.Guessed)
	}
	if s.steady++; max(math.Abs(aimed-s.aimed), guessed) > steadiness*aimed {
		s.aimed, s.steady = aimed, 0
	}
	switch {
	case s.egress == 0:
		s.egress = least
	case aimed*least < leastShare:
		s.egress += slow * (least - s.egress)
		s.processor -= slow * s.processor
	case s.steady >= steadyLooks:
		weight := slow
		if used.Egress/aimed > s.egress {
			weight = quick
		}
		s.egress += weight * (used.Egress/aimed - s.egress)
		s.processor += calm * (used.Processor/aimed - s.processor)
	}
	s.egress = min(max(s.egress, leastScale*least), mostScale*least)
}

type step struct {
	room  int
	level forward.Level
	held  bool
	adds  float64
}

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

func divide(rooms []Room, steps []step, total, give float64) []forward.Level {
	levels := slices.Repeat([]forward.Level{forward.AllLevels}, len(rooms))
	for _, st := range steps {
		line := give
		if st.held {
			line = max(give, keepUpTo)
		}
		switch {
		case levels[st.room] < st.level:
		case total+st.adds <= line:
			total += st.adds
		default:
			levels[st.room] = st.level - 1
		}
	}
	return levels
}

func (s *Sharer) change(now time.Time, rooms []Room, sound, give, atOnce float64) {
	s.changed = now
	levels, scale := divide(rooms, s.steps(rooms), sound, give), max(s.egress, s.processor)
	order := make([]int, len(rooms))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(rooms[a].Level, rooms[b].Level) })
	added := 0.0
	for _, i := range order {
		if rooms[i].Comes > 0 {
			levels[i] = min(levels[i], rooms[i].Level)
		}
		adds := scale * (float64(rooms[i].Demand.UpTo(levels[i])) - float64(rooms[i].Demand.UpTo(rooms[i].Level)))
		if adds > 0 && added > 0 && added+adds > atOnce {
			continue
		}
		added += max(adds, 0)
		rooms[i].Level = levels[i]
	}
	s.excess = -keyframe * added
}
