package webhook

import (
	"sync"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/backoff"
	"github.com/holdfast-rtc/holdfast/ring"
)

// line decides which room one receiver is told of next. It is safe for concurrent use.
type line struct {
	receiver string
	cfg      Config
	woken    chan struct{}

	mu sync.Mutex
	// The fields below are guarded by mu.

	// ready are rooms that are due, in order.
	ready []ring.RoomID
	rooms map[ring.RoomID]*turn
	busy  int
	// failing says that the receiver failed last, so that it is tried with one room at a time.
	failing bool
	// saidFailing is what was logged last.
	saidFailing bool
}

// turn is a room that is ready, busy or waits for another try.
type turn struct {
	state turnState
	// again says that the room was woken while it was busy.
	again bool
	retry backoff.Backoff
	at    time.Time
	// left is how many facts were read and not delivered at the last try.
	left int
}

type turnState int

const (
	turnReady turnState = iota
	turnBusy
	turnWaits
)

func newLine(receiver string, cfg Config) *line {
	return &line{receiver: receiver, cfg: cfg, woken: make(chan struct{}, 1), rooms: map[ring.RoomID]*turn{}}
}

// wake has rooms looked at. One that waits after a failure goes on waiting.
func (l *line) wake(rooms []ring.RoomID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, room := range rooms {
		t := l.rooms[room]
		if t == nil {
			l.rooms[room] = &turn{retry: backoff.Backoff{First: l.cfg.FirstRetry, Most: l.cfg.LastRetry}}
			l.ready = append(l.ready, room)
			continue
		}
		t.again = t.again || t.state == turnBusy
	}
	l.poke()
}

func (l *line) poke() {
	select {
	case l.woken <- struct{}{}:
	default:
	}
}

// next returns a room whose turn it is, or how long there is none unless woken is heard.
func (l *line) next(now time.Time) (room ring.RoomID, wait time.Duration, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	wait = l.cfg.LastRetry
	for room, t := range l.rooms {
		if t.state != turnWaits {
			continue
		}
		if left := t.at.Sub(now); left > 0 {
			wait = min(wait, left)
			continue
		}
		t.state = turnReady
		l.ready = append(l.ready, room)
	}
	most := l.cfg.Parallel
	if l.failing {
		most = 1
	}
	if len(l.ready) == 0 || l.busy >= most {
		return "", wait, false
	}
	room = l.ready[0]
	l.ready = l.ready[1:]
	l.rooms[room].state = turnBusy
	l.busy++
	return room, 0, true
}

// done ends a room's turn. A room that failed gets another one later, and one with more facts at once.
func (l *line) done(room ring.RoomID, o outcome, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.busy--
	t := l.rooms[room]
	if o.asked {
		l.failing, t.left = o.err != nil, o.left
	}
	switch {
	case o.err != nil:
		t.state, t.at = turnWaits, now.Add(backoff.Jitter(t.retry.Next()))
	case o.more || t.again:
		t.retry.Reset()
		t.state, t.again, t.left = turnReady, false, 0
		l.ready = append(l.ready, room)
	default:
		delete(l.rooms, room)
	}
	l.poke()
}

// waiting counts the facts that the receiver was told of in vain, and those read behind them.
func (l *line) waiting() (facts int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, t := range l.rooms {
		facts += t.left
	}
	return facts
}

// turned reports whether the receiver has begun or ceased to fail since the last call that said so.
func (l *line) turned(o outcome) bool {
	if !o.asked {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	failing := o.err != nil
	turned := failing != l.saidFailing
	l.saidFailing = failing
	return turned
}
