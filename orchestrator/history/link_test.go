package history

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/holdfast-rtc/holdfast/people/waitlist"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

const room ring.RoomID = "class"

var errCut = errors.New("connection refused")

// link is one process's connection to the store: it delays, loses, repeats, and can be cut.
type link struct {
	world *world
	cut   atomic.Int32  // reasons for a cut
	lag   time.Duration // so much later it learns that the store's clock was set
}

// told is an answer of the store.
type told struct {
	stands value
	in     pin.Incarnation
	denied bool   // a write, refused by the store
	lost   func() // for a write that took effect and was not answered; or nil
}

// unheard is called where the answer is lost.
func (t told) unheard() {
	if t.lost != nil {
		t.lost()
	}
}

var errDenied = errors.New("NOREPLICAS not enough good replicas to write")

func (l *link) write(apply func() told) func() told {
	return func() told {
		if l.world.denied.Load() == 0 {
			return apply()
		}
		if l.world.store.broken == writesDenied {
			apply()
		}
		return told{denied: true}
	}
}

// exchange takes apply to the store and its answer back.
func (l *link) exchange(ctx context.Context, apply func() told, found *told) (err error) {
	c, f := asking(ctx), l.world.faults
	defer func() {
		if err == nil && found.denied {
			err = errDenied
		}
		c.failed = c.failed || err != nil
	}()
	if l.world.calm.Load() {
		f = faults{}
	}
	if l.away() {
		if c.chance(50) {
			return errCut
		}
		<-ctx.Done()
		return ctx.Err()
	}
	there, back := c.between(time.Millisecond, 12*time.Millisecond), c.between(time.Millisecond, 12*time.Millisecond)
	if f.slow && c.chance(6) {
		there = c.between(50*time.Millisecond, 500*time.Millisecond)
	}
	if f.slow && c.chance(6) {
		back = c.between(50*time.Millisecond, 500*time.Millisecond)
	}
	dropped := f.lose && c.chance(5)
	lost := f.lose && c.chance(8)
	twice := f.lose && c.chance(5)
	began := time.Now()
	if err := c.pause(ctx, there); err != nil {
		if !dropped && f.late {
			l.later(c, there-time.Since(began), apply)
		}
		return err
	}
	if dropped || l.away() {
		<-ctx.Done()
		return ctx.Err()
	}
	*found = apply()
	if twice { // The client repeats a late request.
		l.later(c, c.between(time.Millisecond, 30*time.Millisecond), apply)
	}
	if lost {
		found.unheard()
		<-ctx.Done()
		return ctx.Err()
	}
	if err := c.pause(ctx, back); err != nil {
		found.unheard()
		return err
	}
	return nil
}

// later delivers a request after its sender gave up.
func (l *link) later(c *caller, after time.Duration, apply func() told) {
	late := newCaller(l.world.seed, c.who, l.world.lateID())
	l.world.running.Go(func() {
		_ = late.pause(context.Background(), max(after, 0))
		if !l.away() {
			apply().unheard()
		}
	})
}

func (l *link) away() bool { return l.cut.Load() > 0 || l.world.away.Load() > 0 }

// put is one write. That of a signaling node is an operation of its own, if it was answered.
func (l *link) put(ctx context.Context, w write) (pin.Pin, pin.Incarnation, error) {
	c, s, r := asking(ctx), l.world.store, l.world.record
	w.known, w.why = l.known(c), c.why
	if ends, ok := ctx.Deadline(); ok { // As far as that is known.
		now := time.Now()
		w.ends = ends.Add(l.world.storeTime(now, l.lag).Sub(now))
	}
	c.tried = append(c.tried, w)
	asked := input{kind: kindWrite, call: c.what, who: c.who, pin: c.about, tried: []write{w}}
	if c.why != nil { // As it sends: an answer cannot justify the question.
		asked.ground, asked.holds = c.why.ofDeath()
	}
	var found told
	sent := r.now()
	who := c.who
	apply := l.write(func() told {
		stands, wrote := s.swap(w)
		answer := told{stands: stands, in: s.incarnation(false)}
		if at := r.now(); wrote {
			answer.lost = func() { r.unanswered(who, w, sent, at) }
		}
		return answer
	})
	if err := l.exchange(ctx, apply, &found); err != nil {
		return pin.Pin{}, 0, err
	}
	if c.signaling != nil && found.stands.raw == "" {
		r.add(asked, output{pin: found.stands.pin}, sent, r.now())
	}
	if found.in == 0 {
		l.begin(c)
	}
	p, err := answer(found.stands)
	return p, found.in, err
}

// known is what a fresh claim must be above: what anybody was told of, or its maker where clocks differ.
func (l *link) known(c *caller) pin.Fence {
	if !l.world.faults.skew && !l.world.faults.setClock || c.signaling == nil {
		return l.world.record.known()
	}
	c.signaling.mu.Lock()
	defer c.signaling.mu.Unlock()
	return c.signaling.top
}

// begin begins an incarnation some time after a claim came back without one.
func (l *link) begin(c *caller) {
	late := newCaller(l.world.seed, c.who, l.world.lateID())
	l.world.running.Go(func() {
		_ = late.pause(context.Background(), late.between(time.Millisecond, 20*time.Millisecond))
		l.world.store.incarnation(l.world.denied.Load() == 0)
	})
}

// Incarnations is of LeaseStore.
func (l *link) Incarnations(ctx context.Context) ([]pin.Incarnation, error) {
	var found told
	if err := l.exchange(ctx, l.write(func() told { return told{in: l.world.store.incarnation(true)} }), &found); err != nil {
		return nil, err
	}
	return []pin.Incarnation{found.in}, nil
}

// Claim is of PinStore.
func (l *link) Claim(ctx context.Context, _ ring.RoomID, p pin.Pin, _ string) (pin.Pin, pin.Incarnation, error) {
	return l.put(ctx, write{next: p})
}

// Enter is of PinStore; these histories are of rooms without doors.
func (l *link) Enter(context.Context, ring.RoomID, pin.Pin, string, waitlist.Entry) (pin.Pin, pin.Incarnation, waitlist.Answer, error) {
	return pin.Pin{}, 0, waitlist.Answer{}, errors.ErrUnsupported
}

// Swap is of both.
func (l *link) Swap(ctx context.Context, _ ring.RoomID, old, next pin.Pin, _ string) (pin.Pin, pin.Incarnation, error) {
	return l.put(ctx, write{old: value{pin: old}, next: next})
}

// Repair is of PinStore.
func (l *link) Repair(ctx context.Context, _ ring.RoomID, raw string, next pin.Pin) (pin.Pin, error) {
	p, _, err := l.put(ctx, write{old: value{raw: raw}, next: next})
	return p, err
}

// History is of PinStore.
func (l *link) History(context.Context, ring.RoomID) ([]pin.Change, error) { return nil, nil }

// Get is of PinStore.
func (l *link) Get(ctx context.Context, _ ring.RoomID) (pin.Pin, bool, error) {
	var found told
	if err := l.exchange(ctx, func() told { return told{stands: l.world.store.get(false)} }, &found); err != nil {
		return pin.Pin{}, false, err
	}
	p, err := answer(found.stands)
	return p, err == nil && !p.IsZero(), err
}

// Prolong is of LeaseStore.
func (l *link) Prolong(ctx context.Context, _ ring.RoomID) (pin.Pin, error) {
	var found told
	if err := l.exchange(ctx, l.write(func() told { return told{stands: l.world.store.get(l.world.store.broken != notProlonged)} }), &found); err != nil {
		return pin.Pin{}, err
	}
	return answer(found.stands)
}

// Refresh is of LeaseStore. Only one room is held.
func (l *link) Refresh(ctx context.Context, held []pin.Holding, due func(pin.Holding) bool) ([]pin.Found, error) {
	found := make([]pin.Found, len(held))
	for i, h := range held {
		var read told
		prolong := due(h)
		ask := func() told { return told{stands: l.world.store.get(prolong)} }
		if prolong {
			ask = l.write(ask)
		}
		if err := l.exchange(ctx, ask, &read); err != nil {
			return nil, err
		}
		stands := read.stands
		found[i].Room, found[i].Prolonged = h.Room, prolong
		switch {
		case stands.absent():
			found[i].Stands, _, found[i].Err = l.put(ctx, write{next: h.Pin})
			found[i].Rewritten = found[i].Stands == h.Pin
			found[i].Prolonged = found[i].Rewritten
		default:
			found[i].Stands, found[i].Err = answer(stands)
		}
	}
	return found, nil
}
