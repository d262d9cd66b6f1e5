package forward

import (
	"slices"
	"time"
)

const (
	// When the first packet has waited so long, the loop is behind.
	behindAfter = 50 * time.Millisecond
	// A conversation bears no more. Older pictures are not worth showing, nor is older sound worth hearing.
	oldPicture = 180 * time.Millisecond
	oldSound   = 250 * time.Millisecond
	// After a pause the loop catches up within this.
	behindFor = 150 * time.Millisecond
	// So many pictures' packets are handled before timers and tasks have their turn.
	behindPackets = 16
)

// backlog has the pictures' packets that wait while the loop is behind, as on a machine that gives the process too little time: sound overtakes
// them.
type backlog struct {
	queue []*Packet
	since time.Time     // zero: the loop is not behind
	more  chan struct{} // has a token while the queue is not empty
}

func newBacklog() backlog { return backlog{more: make(chan struct{}, 1)} }

// catchUp handles sound first, then pictures; p, which may be nil, is older than what waits for the loop.
func (r *Room) catchUp(p *Packet) {
	b := &r.backlog
	if b.since.IsZero() {
		b.since = time.Now()
	}
	defer func() { // a packet may panic
		if len(b.queue) == 0 {
			b.since = time.Time{}
			return
		}
		select {
		case b.more <- struct{}{}:
		default:
		}
	}()
	if p != nil {
		r.sortIn(p)
	}
	r.overtake()
	for range behindPackets {
		if len(b.queue) == 0 {
			return
		}
		p := b.queue[0]
		b.queue = b.queue[1:]
		r.handleUnlessOld(p, oldPicture)
		r.overtake()
	}
}

// overtake takes what has come: sound goes at once.
func (r *Room) overtake() {
	for range len(r.packets) {
		r.sortIn(<-r.packets)
	}
}

func (r *Room) sortIn(p *Packet) {
	b := &r.backlog
	switch {
	case p.layer.cfg.Kind == KindAudio:
		r.handleUnlessOld(p, oldSound)
	case len(b.queue) == cap(r.packets):
		r.stats.queueFull.Add(1)
		p.Release()
	default:
		b.queue = append(b.queue, p)
	}
}

// handleUnlessOld leaves old packets out once the loop was behind for a while: after a mere pause it catches up sooner without. Slots that showed an
// old picture wait for the next keyframe.
func (r *Room) handleUnlessOld(p *Packet, old time.Duration) {
	now := time.Now()
	if now.Sub(p.arrived) <= old || now.Sub(r.backlog.since) < behindFor {
		r.handle(p)
		return
	}
	l := p.layer
	r.handling = l
	r.stats.late.Add(1)
	if !l.closed && l.receive(p) && l.cfg.Kind == KindVideo {
		for _, s := range slices.Backward(l.slots) { // stop takes s out
			if s.current == l {
				s.stop()
			}
		}
	}
	p.Release()
}

func (b *backlog) drop() {
	for _, p := range b.queue {
		p.Release()
	}
	b.queue = nil
}
