package forward

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/panics"
	"github.com/holdfast-rtc/holdfast/sfu/forward/parse"
)

const (
	// tickInterval is for what viewers wait for, calmInterval for the rest. A tick wakes a sleeping process.
	tickInterval = 20 * time.Millisecond
	calmInterval = 100 * time.Millisecond
	idleInterval = 500 * time.Millisecond

	lookInterval = 250 * time.Millisecond

	burstPackets = 64
)

// Run forwards until ctx ends and returns nil.
func (r *Room) Run(ctx context.Context) error {
	interval := idleInterval
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	defer r.holding.timer.Stop()
	defer r.pacing.timer.Stop()
	defer r.release()
	for {
		if wanted := r.tickEvery(); wanted != interval {
			interval = wanted
			ticker.Reset(interval)
		}
		select {
		case <-ctx.Done():
			return nil
		case p := <-r.packets:
			r.burst(p)
		case <-r.backlog.more:
			r.behind()
		case <-r.holding.timer.C:
			r.lapse()
		case now := <-r.pacing.timer.C:
			r.paced(now)
		case task := <-r.tasks:
			r.control(task)
		case now := <-ticker.C:
			r.tick(now)
		}
	}
}

func (r *Room) tickEvery() time.Duration {
	switch {
	case len(r.layers) == 0:
		return idleInterval
	case r.viewersWait:
		return tickInterval
	default:
		return calmInterval
	}
}

func (r *Room) control(task func()) {
	defer r.surviveTask()
	r.gather(func() {
		r.do(task)
		for range len(r.tasks) {
			r.do(<-r.tasks)
		}
		r.arrange(time.Now())
	})
}

func (r *Room) gather(f func()) {
	for _, b := range r.cfg.Batchers {
		b.Begin()
		defer b.End()
	}
	f()
}

func (r *Room) burst(p *Packet) {
	defer r.survive()
	r.gather(func() {
		if len(r.backlog.queue) > 0 || time.Since(p.arrived) > behindAfter {
			r.catchUp(p)
			return
		}
		begun := p.arrived
		r.handle(p)
		for i := range min(len(r.packets), burstPackets-1) {
			if i%behindPackets == 0 && time.Since(begun) > behindAfter {
				return
			}
			r.handle(<-r.packets)
		}
	})
}

func (r *Room) behind() {
	defer r.survive()
	r.gather(func() { r.catchUp(nil) })
}

func (r *Room) lapse() {
	defer r.survive()
	r.gather(func() { r.letGo(time.Now()) })
}

func (r *Room) paced(now time.Time) {
	defer r.survive()
	r.gather(func() { r.releasePaced(now) })
}

func (r *Room) handle(p *Packet) {
	l := p.layer
	r.handling = l
	// A packet may overtake AddLayer's task; the cache keeps it.
	if l.closed || !l.receive(p) {
		p.Release()
		return
	}
	if p.header.AudioLevel != parse.NoAudioLevel && l.cfg.Source == SourceMicrophone {
		r.speakers.observe(l.cfg.Peer, p.header.AudioLevel, p.arrived)
	}
	r.hold(p)
}

func (r *Room) tick(now time.Time) {
	defer r.surviveTask()
	r.takeBudgets()
	r.viewersWait = false
	for _, l := range r.layers {
		r.tickLayer(l, now)
	}
	r.expireHolds(now)
	if list, changed := r.speakers.update(now); changed {
		r.speakersChanged = r.speakersChanged || r.scarce || r.apart
		if r.cfg.OnSpeakers != nil {
			r.cfg.OnSpeakers(list)
		}
	}
	look := now.Sub(r.layersLooked) >= lookInterval
	if look {
		for _, l := range r.layers {
			l.measure(now.Sub(r.layersLooked))
		}
		r.layersLooked = now
		r.feed(now)
		r.compareCodecs(now)
		r.layersChanged = true // layers may be silent, or back
	}
	r.gather(func() {
		if look {
			r.addUp(func() { r.arrange(now) })
		} else {
			r.arrange(now)
		}
		for _, sub := range r.subscribers {
			r.tickSubscriber(sub, now)
			r.viewersWait = r.viewersWait || sub.short > 0
		}
	})
}

func (r *Room) release() {
	close(r.done)
	for {
		select {
		case p := <-r.packets:
			p.Release()
		default:
			r.backlog.drop()
			for _, sub := range r.pacing.subs {
				sub.dropPaced()
			}
			for _, l := range r.layers {
				l.closed = true
				l.dropHeld()
				l.cache.clear()
			}
			return
		}
	}
}

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

// A panic costs only the peer whose packet or slot was handled.

func (r *Room) survive() {
	caught := panics.Of(recover())
	if caught == nil {
		return
	}
	l := r.handling
	r.cfg.Panics.Report(r.log, caught, "a packet broke forwarding: its track is dropped",
		"publisher", string(l.cfg.Peer), "source", string(l.cfg.Source), "rid", l.cfg.RID)
	r.dropLayer(l)
	r.broken(l.cfg.Peer)
}

func (r *Room) surviveFor(sub *subscriber) {
	caught := panics.Of(recover())
	if caught == nil {
		return
	}
	r.cfg.Panics.Report(r.log, caught, "a subscriber's slots broke forwarding: they are dropped", "peer", string(sub.peer))
	for _, s := range slices.Clone(sub.slots) {
		r.dropSlot(s)
	}
	r.broken(sub.peer)
}

func (r *Room) surviveTask() {
	if caught := panics.Of(recover()); caught != nil {
		r.cfg.Panics.Report(r.log, caught, "a task broke forwarding")
	}
}

func (r *Room) broken(peer PeerID) {
	if r.cfg.OnBroken != nil {
		r.cfg.OnBroken(peer)
	}
}

func (r *Room) do(task func()) {
	defer r.surviveTask()
	task()
}

func (r *Room) tickLayer(l *Layer, now time.Time) {
	r.handling = l
	defer r.survive()
	l.tick(now)
}

func (r *Room) tickSubscriber(sub *subscriber, now time.Time) {
	defer r.surviveFor(sub)
	sub.sendReports(now)
	sub.probe()
}

func (r *Room) releasePaced(now time.Time) {
	h := &r.pacing
	h.timer.Reset(paceTick) // first: a packet may panic
	for _, sub := range h.subs {
		r.releaseFor(sub, now)
	}
	h.subs = slices.DeleteFunc(h.subs, func(sub *subscriber) bool { return len(sub.pace.queue) == 0 })
	if len(h.subs) == 0 {
		h.timer.Stop()
	}
}

func (r *Room) releaseFor(sub *subscriber, now time.Time) {
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
		r.handling = e.packet.layer
		e.slot.forward(e.packet)
	}
}

func (r *Room) forwardInShards(l *Layer) {
	h := &r.shards
	for i := range h.steady {
		h.steady[i], h.faults[i] = h.steady[i][:0], nil
	}
	for _, s := range l.slots {
		if s.ready && s.current == l && s.sub.budget == 0 && len(s.sub.pace.queue) == 0 {
			h.steady[s.cfg.Shard] = append(h.steady[s.cfg.Shard], s)
			continue
		}
		for _, p := range l.held {
			s.pass(p)
		}
	}
	defer r.rejoin()
	var group sync.WaitGroup
	defer group.Wait()
	for i := 1; i < len(h.steady); i++ {
		if len(h.steady[i]) == 0 {
			continue
		}
		h.copies[i] = r.copies(h.copies[i][:0], l.held)
		group.Go(func() {
			defer func() { h.faults[i] = recover() }()
			r.forwardShard(i, h.copies[i])
		})
	}
	r.forwardShard(0, l.held)
}

func (r *Room) forwardShard(i int, packets []*Packet) {
	for _, s := range r.shards.steady[i] {
		for _, p := range packets {
			in := p.incoming()
			s.write(p, &in)
		}
	}
	batcher := r.cfg.Batchers[i]
	batcher.End()
	batcher.Begin()
}

// copies have payloads that the part may patch. A recycled packet keeps what is not set here.
func (r *Room) copies(into, packets []*Packet) []*Packet {
	for _, p := range packets {
		c := r.GetPacket()
		copy(c.buffer[:p.length], p.buffer[:p.length])
		c.length, c.layer, c.arrived, c.header, c.picture, c.sequence, c.redundancy, c.padding = p.length, p.layer, p.arrived, p.header, p.picture, p.sequence, p.redundancy, p.padding
		if c.described = p.described; c.described {
			c.frame = p.frame
		} else {
			c.frame.Number = 0
		}
		into = append(into, c)
	}
	return into
}

// rejoin panics again for a part.
func (r *Room) rejoin() {
	for i, copies := range r.shards.copies {
		for j, c := range copies {
			c.Release()
			copies[j] = nil
		}
		r.shards.copies[i] = copies[:0]
	}
	for _, fault := range r.shards.faults {
		if fault != nil {
			panic(fault) //nolint:forbidigo // it is passed on, to the goroutine that can deal with it
		}
	}
}
