package share

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/sfu/forward"
)

// live is a media node whose streams are measured as package forward does it, and its egress as package sfu does it: each of a
// stream's values is late, and so is what was sent.
type live struct {
	sharer  Sharer
	now     time.Time
	rooms   []Room
	came    map[ring.RoomID]time.Time
	streams []*stream
	resent  float64 // what is sent for each bit of media
	sent    float64 // bits, in all
	window  struct {
		at   time.Time
		sent float64
		rate float64
	}
	asleep  time.Duration // the process does not run
	over    time.Duration // above the ceiling without a break
	longest time.Duration // the most that over was
	limits  time.Duration // pictures were held back for so long in all
	moves   int           // changes of levels
}

// stream is one step of a room's pictures.
type stream struct {
	room     int
	level    forward.Level
	bits     float64
	key      float64 // the look in which its first keyframe is, as a multiple
	keyAt    int     // that look
	grows    float64 // by so much of it when it is let through
	let      bool    // through
	burst    float64
	looks    int
	measured float64
	young    float64 // the next measurement's weight is made of it, as in forward.rateMeter
}

func newLive() *live {
	l := &live{now: time.Unix(1_800_000_000, 0), resent: 1, came: map[ring.RoomID]time.Time{}}
	l.window.at = l.now
	return l
}

// open adds a room whose streams begin with keyframes.
func (l *live) open(share float64, levels []forward.Level, key float64) {
	room := len(l.rooms)
	l.rooms = append(l.rooms, Room{ID: ring.RoomID(fmt.Sprint(room)), Level: Newcomer(!l.sharer.Since().IsZero(), 0)})
	for _, level := range levels {
		l.streams = append(l.streams, &stream{room: room, level: level, bits: share * float64(ceiling.BitsPerSecond) / float64(len(levels)), key: key, burst: 1})
	}
}

// openCamera adds a room of the three layers of cameras that was there before.
func (l *live) openCamera(share, key float64) {
	id := ring.RoomID(fmt.Sprint(len(l.rooms)))
	for _, step := range slices.Sorted(maps.Keys(camera)) {
		l.streams = append(l.streams, &stream{room: len(l.rooms), level: step, bits: camera[step] * share * float64(ceiling.BitsPerSecond), key: key, burst: 1})
	}
	l.rooms = append(l.rooms, Room{ID: id, Level: forward.AllLevels})
}

// takeOver adds one with people in it, as the node does: what it sent elsewhere is known.
func (l *live) takeOver(share, key float64) {
	level, comes := Newcomer(!l.sharer.Since().IsZero(), l.all()+share), share
	if level == forward.LowestLevels {
		comes *= camera[1]
	}
	l.openCamera(share, key)
	r := &l.rooms[len(l.rooms)-1]
	r.Level, r.Comes, r.New, l.came[r.ID] = level, comes, true, l.now
}

// camera is which part of a camera's bits each of its steps adds.
var camera = map[forward.Level]float64{1: 0.1, 30: 0.25, 40: 0.65}

// leave ends the newest rooms.
func (l *live) leave(n int) {
	left := len(l.rooms) - n
	l.rooms = l.rooms[:left]
	var streams []*stream
	for _, s := range l.streams {
		if s.room < left {
			streams = append(streams, s)
		}
	}
	l.streams = streams
}

// flow is what the stream sends in this look: it begins with a keyframe, and has another one when it is let through again.
func (s *stream) flow(let bool) float64 {
	begins, flow := s.looks == s.keyAt || let && !s.let, s.bits*s.burst
	if s.let = let; let {
		flow *= 1 + s.grows
	}
	if begins {
		flow *= s.key
	}
	return flow
}

func (l *live) look() {
	for i := range l.rooms {
		l.rooms[i].Demand = forward.Demand{}
	}
	rate := 0.0
	for _, s := range l.streams {
		let := s.level <= l.rooms[s.room].Level
		flow := s.flow(let)
		s.looks++
		switch s.looks {
		case 1: // a part of a look: not counted
		case 2:
			s.measured, s.young = flow, 1
		default:
			s.young = max(s.young/(1+s.young), 0.25)
			s.measured += s.young * (flow - s.measured)
		}
		d := &l.rooms[s.room].Demand
		if s.looks > 1 {
			d.Steps[s.level] += uint64(s.measured)
		} else if let {
			d.Guessed += uint64(flow)
		}
		if let {
			rate += l.resent * flow
			if s.looks > 1 {
				d.Aimed += uint64(s.measured)
			}
		}
	}
	l.sent += rate * Every.Seconds()
	l.now = l.now.Add(Every)
	if l.over += Every; rate <= float64(ceiling.BitsPerSecond) {
		l.over = 0
	}
	if l.asleep > 0 {
		l.asleep -= Every
		return
	}
	if past := l.now.Sub(l.window.at); past >= time.Second/2 {
		l.window.rate = (l.sent - l.window.sent) / past.Seconds()
		l.window.at, l.window.sent = l.now, l.sent
	}
	before := make([]forward.Level, len(l.rooms))
	for i := range l.rooms {
		before[i] = l.rooms[i].Level
	}
	l.longest = max(l.longest, l.over)
	l.sharer.Next(l.now, Used{Egress: l.window.rate / float64(ceiling.BitsPerSecond)}, ceiling, l.rooms)
	for i := range l.rooms {
		l.rooms[i].New = false
		if l.now.Sub(l.came[l.rooms[i].ID]) >= Settles {
			l.rooms[i].Comes = 0
		}
		if l.rooms[i].Demand.UpTo(before[i]) != l.rooms[i].Demand.UpTo(l.rooms[i].Level) {
			l.moves++
		}
	}
	if !l.sharer.Since().IsZero() {
		l.limits += Every
	}
}

func (l *live) pass(d time.Duration) {
	for range d / Every {
		l.look()
	}
}

// all is what would be sent, as a share of the ceiling.
func (l *live) all() (share float64) {
	for _, s := range l.streams {
		share += s.bits / float64(ceiling.BitsPerSecond)
	}
	return share
}

// let is what is sent, as a share of the ceiling.
func (l *live) let() (share float64) {
	for _, s := range l.streams {
		if s.let {
			share += s.bits / float64(ceiling.BitsPerSecond)
		}
	}
	return share
}

// largest is the largest step that is not sent.
func (l *live) largest() (share float64) {
	for _, s := range l.streams {
		if !s.let {
			share = max(share, s.bits/float64(ceiling.BitsPerSecond))
		}
	}
	return share
}

func drawLevels(t *rapid.T) []forward.Level {
	return rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) forward.Level {
		return forward.Level(rapid.IntRange(1, forward.Levels-1).Draw(t, "level"))
	}), 1, 4, func(l forward.Level) forward.Level { return l }).Draw(t, "levels")
}

// soon is after a moment in which four times as much was sent for three seconds.
const soon = 30 * time.Second

// Something happens to a node whose rooms fit: for a moment far more is measured than is sent for long. All pictures are back
// soon, and stay.
func TestAMomentHoldsNothingBackForLong(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := newLive()
		fits := rapid.Float64Range(0.3, fitsUpTo-0.01).Draw(t, "share of the ceiling")
		n := rapid.IntRange(1, 12).Draw(t, "rooms")
		come := rapid.IntRange(0, n).Draw(t, "of which come later")
		for i := range n {
			if i == n-come {
				l.pass(10 * time.Second)
			}
			l.open(fits/float64(n), drawLevels(t), rapid.Float64Range(1, 2).Draw(t, "keyframe"))
		}
		moment := time.Duration(rapid.IntRange(1, 12).Draw(t, "looks")) * Every
		l.pass(time.Duration(rapid.IntRange(0, 20).Draw(t, "before")) * Every)
		switch rapid.SampledFrom([]string{"burst", "resent", "asleep", "leave", "nothing"}).Draw(t, "what happens") {
		case "burst":
			for _, s := range l.streams {
				s.burst = rapid.Float64Range(1, 3).Draw(t, "burst")
			}
		case "resent":
			l.resent = rapid.Float64Range(1, 4).Draw(t, "resent")
		case "asleep":
			l.asleep = moment
		case "leave":
			n := rapid.IntRange(0, len(l.rooms)-1).Draw(t, "leave")
			l.leave(n)
			l.pass(moment)
			for range n {
				l.open(fits/float64(len(l.rooms)+n), drawLevels(t), 2)
			}
		}
		l.pass(moment)
		l.resent = 1
		for _, s := range l.streams {
			s.burst = 1
		}
		l.pass(soon)
		if since := l.sharer.Since(); !since.IsZero() {
			t.Fatalf("rooms of %.2f of the ceiling are held back, %s ago something happened", l.all(), soon)
		}
		l.moves = 0
		l.pass(time.Minute)
		if l.moves > 0 {
			t.Fatalf("rooms of %.2f of the ceiling: %d changes afterwards", l.all(), l.moves)
		}
	})
}

// Rooms that a node takes over begin with keyframes, and nothing is known of them at first: where all fit, nothing or next to
// nothing is held back.
func TestAFailoverHoldsNothingBack(t *testing.T) {
	for _, share := range []float64{0.7, 0.8, 0.9, 0.94} {
		for _, key := range []float64{1, 1.7, 3} {
			l := newLive()
			for range 3 {
				l.open(share/6, []forward.Level{1, 30, 40}, 1)
			}
			l.pass(10 * time.Second)
			for range 3 {
				l.open(share/6, []forward.Level{1, 30, 40}, key)
			}
			l.pass(time.Minute)
			if most := 5 * time.Second; l.limits > most || key == 1 && l.limits > 0 || !l.sharer.Since().IsZero() {
				t.Errorf("%.2f of the ceiling, keyframes of %.1f: pictures were held back for %s", share, key, l.limits)
			}
		}
	}
}

// A node takes over more than it may send, in which keyframes come first: nothing flows that has to go again. It is not above its
// ceiling for more than a second, and in the end it sends what it may.
func TestWhatIsTooMuchIsHeldBackBeforeItFlows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := newLive()
		before, n := rapid.Float64Range(0.4, 0.9).Draw(t, "share of the ceiling"), rapid.IntRange(1, 8).Draw(t, "rooms")
		for range n {
			l.openCamera(before/float64(n), 1)
		}
		l.pass(10 * time.Second)
		with, come := rapid.Float64Range(1, 1.8).Draw(t, "with what comes"), rapid.IntRange(1, 12).Draw(t, "rooms that come")
		for range come {
			l.takeOver((with-before)/float64(come), rapid.Float64Range(1, 2).Draw(t, "keyframe"))
			l.pass(time.Duration(rapid.IntRange(0, 1).Draw(t, "looks")) * Every)
		}
		l.pass(30 * time.Second)
		if l.longest > time.Second {
			t.Fatalf("above the ceiling for %s", l.longest)
		}
		if sent := l.let(); sent < giveUpTo-l.largest() || sent > 1 {
			t.Fatalf("%.2f of the ceiling is sent", sent)
		}
	})
}

// Where all fits, rooms that come keep all of their pictures, whatever their keyframes.
func TestWhatFitsIsNeverHeldBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := newLive()
		with, n := rapid.Float64Range(0.3, 0.9).Draw(t, "share of the ceiling"), rapid.IntRange(1, 8).Draw(t, "rooms")
		before := rapid.Float64Range(0.5, 0.9).Draw(t, "part that was there")
		for range n {
			l.openCamera(before*with/float64(n), 1)
		}
		l.pass(10 * time.Second)
		come, keyAt := rapid.IntRange(1, 12).Draw(t, "rooms that come"), rapid.IntRange(0, 1).Draw(t, "look of the keyframes")
		for range come {
			l.takeOver((1-before)*with/float64(come), rapid.Float64Range(1, 2).Draw(t, "keyframe"))
			for i := range len(camera) {
				l.streams[len(l.streams)-1-i].keyAt = keyAt
			}
		}
		l.pass(time.Minute)
		if l.moves > 0 || l.limits > 0 {
			t.Fatalf("rooms of %.2f of the ceiling: %d changes, held back for %s", l.all(), l.moves, l.limits)
		}
	})
}

// All cameras have a keyframe at once: nothing goes.
func TestABurstMayPass(t *testing.T) {
	l := newLive()
	for range 4 {
		l.open(0.9/4, []forward.Level{1, 40}, 1)
	}
	l.pass(10 * time.Second)
	for _, s := range l.streams {
		s.burst = 1.4
	}
	l.look()
	for _, s := range l.streams {
		s.burst = 1
	}
	l.pass(10 * time.Second)
	if l.limits > 0 {
		t.Errorf("pictures were held back for %s", l.limits)
	}
}

// What comes back begins with keyframes: that is no reason to take it again.
func TestWhatComesBackStays(t *testing.T) {
	l := newLive()
	for range 2 {
		l.open(0.47, []forward.Level{40}, 2)
	}
	l.pass(10 * time.Second)
	for _, s := range l.streams {
		s.burst = 3
	}
	l.look()
	for _, s := range l.streams {
		s.burst = 1
	}
	l.pass(soon)
	if !l.sharer.Since().IsZero() || l.limits == 0 {
		t.Errorf("pictures were held back for %s, and since %v", l.limits, l.sharer.Since())
	}
}

// What would fit does not when it is sent: the tries become rare.
func TestTriesThatFailBecomeRare(t *testing.T) {
	l := newLive()
	l.open(0.5, []forward.Level{1}, 1)
	l.open(0.42, []forward.Level{40}, 1)
	l.streams[1].grows = 0.3
	l.pass(10 * time.Minute)
	// After 2, 4, 8, 16, 32 s, and then once a minute; each try is two changes.
	if l.moves < 20 || l.moves > 36 {
		t.Errorf("%d changes in ten minutes", l.moves)
	}
}

// The demand varies around any share of the ceiling: pictures do not come and go all the time, and the ceiling is not passed
// for more than a second but by what comes at once.
func TestLevelsDoNotFlap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := newLive()
		share, n := rapid.Float64Range(0.8, 1.3).Draw(t, "share of the ceiling"), rapid.IntRange(2, 10).Draw(t, "rooms")
		noise := rapid.Float64Range(0, 0.08).Draw(t, "noise")
		for range n {
			l.open(share/float64(n), drawLevels(t), rapid.Float64Range(1, 2).Draw(t, "keyframe"))
		}
		l.pass(10 * time.Second)
		dice := rapid.Uint64().Draw(t, "dice")
		l.moves = 0
		const minutes = 10
		for range minutes * time.Minute / Every {
			for _, s := range l.streams {
				dice = dice*6364136223846793005 + 1442695040888963407
				s.burst = 1 + noise*(2*float64(dice>>40)/(1<<24)-1)
			}
			l.look()
			if l.over > time.Second {
				t.Fatalf("above the ceiling for %s", l.over)
			}
		}
		if most := 2 * n * minutes; l.moves > most {
			t.Fatalf("%d rooms of %.2f of the ceiling together: %d changes in %d minutes", n, share, l.moves, minutes)
		}
	})
}

// For a moment something else takes all of the processor, and nearly all pictures are held back: what is left is too little to learn
// from that the moment is over.
func TestAMomentOfProcessorTime(t *testing.T) {
	n := newNode()
	n.call("a", 500_000, 1_000_000, map[forward.Level]uint64{30: 20_000_000, 40: 30_000_000})
	n.pass(10 * time.Second)
	n.spent = 20.0 / 100_000_000
	n.pass(3 * time.Second)
	if n.sharer.Since().IsZero() {
		t.Error("nothing was held back")
	}
	n.spent = 0
	n.pass(soon)
	if !n.sharer.Since().IsZero() {
		t.Errorf("%.2f of the ceiling is used, at level %d", n.used(), n.rooms[0].Level)
	}
}

// Rooms that have just come send as much as the others, and what they send is not measured yet: that does not make a bit dearer.
func TestWhatIsGuessedTeachesNothing(t *testing.T) {
	n := newNode()
	n.call("a", 500_000, 40_000_000, nil)
	n.pass(10 * time.Second)
	before := n.sharer.egress
	n.rooms[0].Demand.Guessed = 40_000_000
	for range 4 {
		n.sharer.Next(n.now, Used{Egress: 2 * n.used()}, ceiling, n.rooms)
		n.now = n.now.Add(Every)
	}
	if n.sharer.egress != before {
		t.Errorf("a bit takes %.2f times what it took", n.sharer.egress/before)
	}
}
