package history

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-rtc/holdfast/pin"
)

// faults are the kinds that a schedule may have.
type faults struct {
	slow       bool // later than the budget
	lose       bool // requests and answers, and requests repeated
	late       bool // requests that arrive after their sender gave up
	kill       bool // media nodes; they come back as new boots
	suspect    bool // live media nodes are taken for dead
	cut        bool // processes cannot reach the store
	full       bool // media nodes refuse to open rooms
	leave      bool // rooms close, pins expire
	fresh      bool // signaling nodes are replaced
	empty      bool // the store restarts empty
	twice      bool // again, a moment later
	storm      bool // the store loses data several times within moments
	rollBack   bool // the store loses its last writes
	damage     bool // the pin is overwritten
	trust      bool // a majority vouches for every owner
	sweep      bool // pins of dead boots are removed
	skew       bool // of signaling nodes; they jump
	deny       bool // the store refuses writes and answers reads
	unanswered bool // media nodes answer nothing
	setClock   bool // the store's is set back, or ahead for a while
}

// act is a step's kind.
type act string

const (
	actJoin         act = "join"
	actKill         act = "kill"
	actBoot         act = "boot"
	actSuspect      act = "suspect"
	actBlind        act = "blind to node b"
	actCutNode      act = "cut node"
	actCutSignaling act = "cut signaling"
	actAway         act = "store away"
	actFull         act = "full"
	actLeave        act = "leave"
	actLapse        act = "leave, and an hour passes"
	actFresh        act = "fresh signaling"
	actEmpty        act = "store empty"
	actTwice        act = "store empty twice"
	actStorm        act = "store loses again and again"
	actRollBack     act = "store rolled back"
	actDamage       act = "damage"
	actSweep        act = "sweep"
	actDeny         act = "store refuses writes"
	actMute         act = "node unanswered"
	actStepBack     act = "store's clock set back"
	actStepAhead    act = "store's clock ahead"
)

type action struct {
	id   int
	at   time.Duration
	what act
	who  int
	long time.Duration
}

func (a action) String() string {
	return fmt.Sprintf("%v %s %d for %v", a.at, a.what, a.who, a.long)
}

func plan(actions []action) string {
	actions = slices.Clone(actions)
	slices.SortFunc(actions, func(a, b action) int { return int(a.at - b.at) })
	var b strings.Builder
	for _, a := range actions {
		fmt.Fprintf(&b, "  %v\n", a)
	}
	return b.String()
}

// length is when the faults end.
const length = 60 * time.Second

// schedule draws the actions of a seed, mostly in bursts, which race.
func schedule(seed uint64, f faults) []action {
	random := rand.New(rand.NewPCG(seed, 0))
	acts := []act{actJoin, actJoin, actJoin, actJoin}
	for _, more := range []struct {
		on   bool
		acts []act
	}{
		{f.kill, []act{actKill, actBoot}},
		{f.suspect, []act{actSuspect}},
		{f.cut, []act{actCutNode, actCutSignaling, actAway}},
		{f.full, []act{actFull}},
		{f.leave, []act{actLeave}},
		{f.leave && !f.trust, []act{actLapse}},
		{f.fresh, []act{actFresh}},
		{f.empty, []act{actEmpty}},
		{f.twice, []act{actTwice, actTwice}},
		{f.storm, []act{actStorm, actStorm, actStorm}},
		{f.rollBack, []act{actRollBack}},
		{f.damage, []act{actDamage}},
		{f.sweep, []act{actSweep, actSweep, actSweep}},
		{f.deny, []act{actDeny, actDeny}},
		{f.unanswered, []act{actMute, actMute}},
		{f.setClock, []act{actStepBack, actStepAhead, actStepAhead}},
	} {
		if more.on {
			acts = append(acts, more.acts...)
		}
	}
	bursts := make([]time.Duration, 1+random.IntN(5))
	for i := range bursts {
		bursts[i] = time.Duration(random.Int64N(int64(length)))
	}
	actions := make([]action, 6+random.IntN(24))
	for i := range actions {
		at := time.Duration(random.Int64N(int64(length)))
		if random.IntN(4) > 0 {
			at = bursts[random.IntN(len(bursts))] + time.Duration(random.Int64N(int64(80*time.Millisecond)))
		}
		actions[i] = action{
			id: i + 1, at: at, what: acts[random.IntN(len(acts))], who: random.IntN(3),
			long: time.Duration(random.Int64N(int64(4 * time.Second))),
		}
		if random.IntN(5) == 0 {
			actions[i].long *= 5
		}
	}
	return actions
}

// lostMove: two signaling nodes move the room from one pin, and the store loses the first move in between.
func lostMove(seed uint64) []action {
	random := rand.New(rand.NewPCG(seed, 0))
	within := func(most time.Duration) time.Duration { return time.Duration(random.Int64N(int64(most))) }
	return []action{
		{id: 1, at: time.Second, what: actJoin, who: 0},
		{id: 2, at: 2 * time.Second, what: actJoin, who: 1},
		{id: 3, at: 3 * time.Second, what: actBlind, who: 1},
		{id: 4, at: 4 * time.Second, what: actSuspect, who: 0, long: 4 * time.Second},
		{id: 5, at: 4*time.Second + within(60*time.Millisecond), what: actRollBack, long: time.Second},
		{id: 6, at: 4*time.Second + within(60*time.Millisecond), what: actSuspect, who: 1, long: 4 * time.Second},
	}
}

// lapsed: many people come to a room in the moment in which its pin expires after an hour.
func lapsed(seed uint64) []action {
	random := rand.New(rand.NewPCG(seed, 0))
	actions := []action{
		{id: 1, at: time.Second, what: actJoin, who: 0},
		{id: 2, at: 2 * time.Second, what: actSuspect, who: 0, long: time.Second},
		{id: 3, at: 20 * time.Second, what: actLapse},
	}
	for i := range 6 {
		at := 20*time.Second + time.Duration(random.Int64N(int64(60*time.Millisecond)))
		actions = append(actions, action{id: 4 + i, at: at, what: actJoin, who: i % 3})
	}
	return actions
}

// swept: a signaling node removes the pin of a live node while people join through others.
func swept(seed uint64) []action {
	random := rand.New(rand.NewPCG(seed, 0))
	actions := []action{
		{id: 1, at: time.Second, what: actJoin, who: 0},
		{id: 2, at: 2 * time.Second, what: actSuspect, who: 0, long: time.Second},
		{id: 3, at: 10 * time.Second, what: actBlind, who: 1},
	}
	for i := range 6 {
		what := []act{actJoin, actJoin, actSweep}[i%3]
		at := 20*time.Second + time.Duration(random.Int64N(int64(200*time.Millisecond)))
		actions = append(actions, action{id: 4 + i, at: at, what: what, who: []int{0, 2, 1}[i%3]})
	}
	return actions
}

func (w *world) run(a action) {
	c, ctx := newCaller(w.seed, fmt.Sprintf("%s %d", a.what, a.id), a.id), context.Background()
	_ = c.pause(ctx, a.at)
	e, s := w.everySignaling()[a.who], w.current(a.who)
	c.who = fmt.Sprintf("%s, %s %d", e.name, a.what, a.id)
	switch a.what {
	case actJoin:
		e.join(c, pin.Pin{})
	case actKill:
		w.kill(s)
	case actBoot:
		w.kill(s)
		_ = c.pause(ctx, c.between(time.Millisecond, time.Second))
		w.kill(w.current(a.who)) // Another restart may have been faster.
		w.welcome(w.boot(a.who))
	case actSuspect:
		w.suspect(c, e, a.long)
	case actBlind:
		e.lost(w.current(1).boot)
	case actCutNode:
		w.hold(c, &s.link.cut, a.long)
	case actCutSignaling:
		w.hold(c, &e.link.cut, a.long)
	case actAway:
		w.hold(c, &w.away, a.long)
	case actFull:
		w.full(c, s, a.long)
	case actLeave:
		w.leave()
	case actLapse:
		w.leave()
		w.store.lapse(c.between(time.Millisecond, 60*time.Millisecond))
	case actFresh:
		fresh := newSignalingNode(w, e.name+"'")
		w.mu.Lock()
		w.signalingNodes[a.who] = fresh
		w.mu.Unlock()
	case actEmpty:
		w.store.forget()
	case actTwice: // Mostly within one join.
		w.store.forget()
		_ = c.pause(ctx, c.between(time.Millisecond, 60*time.Millisecond))
		w.store.forget()
	case actStorm:
		for range 2 + c.random.IntN(7) {
			if w.faults.rollBack && c.chance(50) {
				w.store.rollBack(c.between(time.Millisecond, 300*time.Millisecond))
			} else {
				w.store.forget()
			}
			_ = c.pause(ctx, c.between(time.Millisecond, 80*time.Millisecond))
		}
	case actRollBack:
		w.store.rollBack(min(a.long/4, time.Second))
	case actDamage:
		w.store.damage()
	case actSweep:
		e.sweep(c)
	case actDeny:
		w.hold(c, &w.denied, a.long)
	case actMute:
		s.unanswered.Add(1)
		_ = c.pause(ctx, a.long)
		s.unanswered.Add(-1)
	case actStepBack:
		w.stepBack(c.between(time.Second, time.Hour))
	case actStepAhead:
		by := c.between(time.Hour, 24*time.Hour)
		w.stepBack(-by)
		w.store.expire()
		_ = c.pause(ctx, a.long)
		w.stepBack(by)
	}
}
