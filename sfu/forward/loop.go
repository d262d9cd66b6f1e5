package forward

import (
	"context"
	"slices"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/panics"
	"github.com/holdfast-rtc/holdfast/sfu/forward/parse"
)

const (
	// The room ticks at tickInterval while a keyframe is awaited or a path is probed, else at calmInterval, without pictures at soundInterval,
	// and without publishers at idleInterval: each tick wakes a process that could sleep.
	tickInterval  = 20 * time.Millisecond
	calmInterval  = 100 * time.Millisecond
	soundInterval = speakersInterval
	idleInterval  = 500 * time.Millisecond

	measureInterval = 250 * time.Millisecond

	burstPackets = 64
)

// Run is the room's loop: it forwards until ctx ends and returns nil. Each step takes the room's turn.
func (r *Room) Run(ctx context.Context) error {
	interval := idleInterval
	ticker := time.NewTimer(untilTick(interval, time.Now()))
	defer ticker.Stop()
	defer r.frames.timer.Stop()
	defer r.pacing.timer.Stop()
	defer r.release()
	for {
		if wanted := r.interval(); wanted != interval {
			interval = wanted
			ticker.Reset(untilTick(interval, time.Now()))
		}
		select {
		case <-ctx.Done():
			return nil
		case p := <-r.packets:
			r.handleBurst(p)
		case <-r.backlog.more:
			r.handleBacklog()
		case <-r.frames.timer.C:
			r.handleOverdueFrames()
		case now := <-r.pacing.timer.C:
			r.handlePaced(now)
		case task := <-r.tasks:
			r.handleTasks(task)
		case now := <-ticker.C:
			r.tick(now)
			ticker.Reset(untilTick(interval, time.Now()))
		}
	}
}

// untilTick returns the time until a tick that is due in about an interval. All rooms tick at multiples of tickInterval, so that one timer
// of the process wakes many of them.
func untilTick(interval time.Duration, now time.Time) time.Duration {
	ahead := time.Duration(now.UnixNano()) % tickInterval
	if ahead > tickInterval/2 {
		ahead -= tickInterval
	}
	return interval - ahead
}

// interval is tickEvery for who does not hold the turn.
func (r *Room) interval() time.Duration {
	r.turn.take()
	defer r.turn.giveBack()
	return r.tickEvery()
}

// tickEvery needs the turn.
func (r *Room) tickEvery() time.Duration {
	switch {
	case len(r.members.layers) == 0:
		return idleInterval
	case r.viewersWait:
		return tickInterval
	case !r.pictures:
		return soundInterval
	default:
		return calmInterval
	}
}

func (r *Room) handleTasks(task func()) {
	r.turn.take()
	defer r.turn.giveBack()
	defer r.catchTask()
	r.inBatch(func() {
		r.runTask(task)
		for range len(r.tasks) {
			r.runTask(<-r.tasks)
		}
		r.updateSubscribers(time.Now())
	})
}

func (r *Room) runTask(task func()) {
	defer r.catchTask()
	task()
}

func (r *Room) inBatch(f func()) {
	for _, b := range r.cfg.Batchers {
		b.Begin()
	}
	defer r.endBatches()
	f()
}

func (r *Room) endBatches() {
	for _, b := range r.cfg.Batchers {
		b.End()
	}
}

func (r *Room) handleBurst(p *Packet) {
	r.turn.take()
	defer r.turn.giveBack()
	defer r.catchPacket()
	p.layer.queued.Add(-1)
	r.inBatch(func() {
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
			r.handle(r.nextPacket())
		}
	})
}

func (r *Room) handleBacklog() {
	r.turn.take()
	defer r.turn.giveBack()
	defer r.catchPacket()
	r.inBatch(func() { r.catchUp(nil) })
}

func (r *Room) handleOverdueFrames() {
	r.turn.take()
	defer r.turn.giveBack()
	defer r.catchPacket()
	r.inBatch(func() { r.forwardOverdueFrames(time.Now()) })
}

func (r *Room) handlePaced(now time.Time) {
	r.turn.take()
	defer r.turn.giveBack()
	defer r.catchPacket()
	r.inBatch(func() { r.releasePaced(now) })
}

// nextPacket takes a packet that waits for the loop. It needs the turn.
func (r *Room) nextPacket() *Packet {
	p := <-r.packets
	p.layer.queued.Add(-1)
	return p
}

func (r *Room) handle(p *Packet) {
	l := p.layer
	r.handling = l
	// A packet may come before the task of AddLayer has run: then no slot shows the layer yet, and the cache keeps the packet.
	if l.closed || !l.receive(p) {
		p.Release()
		return
	}
	if p.header.AudioLevel != parse.NoAudioLevel && l.cfg.Source == SourceMicrophone {
		r.speakers.observe(l.cfg.Peer, p.header.AudioLevel, p.arrived)
	}
	l.giveToTaps(p)
	r.gatherFrame(p)
}

const (
	// The loop is behind if the first packet has waited longer than behindAfter.
	behindAfter = 50 * time.Millisecond
	// Pictures older than oldPicture and sound older than oldSound disturb a conversation more than their loss.
	oldPicture = 180 * time.Millisecond
	oldSound   = 250 * time.Millisecond
	// A loop that was merely paused catches up within behindFor, and leaves nothing out.
	behindFor = 150 * time.Millisecond
	// Timers and tasks have their turn after so many packets of pictures.
	behindPackets = 16
)

// backlog has the packets of pictures that wait while the loop is behind, because the machine gives the process too little time. Sound
// overtakes them.
type backlog struct {
	queue []*Packet
	// since is zero while the loop is not behind.
	since time.Time
	// more has a token while the queue is not empty.
	more chan struct{}
}

func newBacklog() backlog { return backlog{more: make(chan struct{}, 1)} }

// catchUp handles all sound that waits, and then some pictures. p, which may be nil, is older than everything that waits.
func (r *Room) catchUp(p *Packet) {
	b := &r.backlog
	if b.since.IsZero() {
		b.since = time.Now()
	}
	// Deferred, because a packet may panic.
	defer func() {
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
		r.enqueueBehind(p)
	}
	r.drainQueue()
	for range behindPackets {
		if len(b.queue) == 0 {
			return
		}
		p := b.queue[0]
		b.queue = b.queue[1:]
		r.handleUnlessOld(p, oldPicture)
		r.drainQueue()
	}
}

// drainQueue handles the sound that has come, and lets pictures wait in the backlog.
func (r *Room) drainQueue() {
	for range len(r.packets) {
		r.enqueueBehind(r.nextPacket())
	}
}

func (r *Room) enqueueBehind(p *Packet) {
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

// handleUnlessOld leaves an old packet out, once the loop was behind for longer than a mere pause. Slots that show a picture of which a packet
// is left out wait for the next keyframe.
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
		// Backward, because stopForwarding takes s out of the list.
		for _, s := range slices.Backward(l.slots) {
			if s.current == l {
				s.stopForwarding()
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

// gatherFrame forwards sound at once, and pictures frame by frame, so that a frame's packets to one subscriber leave together. It takes over the
// reference to the packet.
func (r *Room) gatherFrame(p *Packet) {
	l := p.layer
	if l.cfg.Kind != KindVideo {
		l.forwardSound(p)
		return
	}
	l.frame = append(l.frame, p)
	switch {
	case p.header.Marker || len(l.frame) == framePackets:
		l.forwardFrame()
		r.frames.remove(l)
	case len(l.frame) == 1:
		r.frames.layers = append(r.frames.layers, l)
		if len(r.frames.layers) == 1 {
			r.frames.timer.Reset(frameWait)
		}
	}
}

func (r *Room) forwardOverdueFrames(now time.Time) {
	h := &r.frames
	for len(h.layers) > 0 {
		l := h.layers[0]
		if wait := frameWait - now.Sub(l.frame[0].arrived); wait > 0 {
			h.timer.Reset(wait)
			return
		}
		r.handling = l
		l.forwardFrame()
		h.remove(l)
	}
}

func (r *Room) releasePaced(now time.Time) {
	h := &r.pacing
	// The timer is set first, because a packet may panic.
	h.timer.Reset(paceTick)
	for _, sub := range h.subs {
		sub.releasePaced(now, &r.handling)
	}
	h.subs = slices.DeleteFunc(h.subs, func(sub *subscriber) bool { return len(sub.pace.queue) == 0 })
	if len(h.subs) == 0 {
		h.timer.Stop()
	}
}

// tick does the periodic work of a room: layers, speakers, measurements, the assignment of slots, reports and probes.
func (r *Room) tick(now time.Time) {
	r.turn.take()
	defer r.turn.giveBack()
	defer r.catchTask()
	r.takeBudgets()
	r.viewersWait, r.pictures = false, false
	for _, l := range r.members.layers {
		r.pictures = r.pictures || l.cfg.Kind == KindVideo
		r.tickLayer(l, now)
	}
	for _, sub := range r.members.subscribers {
		sub.expireHolds(now)
	}
	list, changed, turned := r.speakers.update(now)
	if changed {
		r.takeSpeakers()
		if r.cfg.OnSpeakers != nil {
			r.cfg.OnSpeakers(list)
		}
	}
	if turned {
		r.tellSpoke()
	}
	measures := now.Sub(r.measuredAt) >= measureInterval
	if measures {
		for _, l := range r.members.layers {
			l.measure(now.Sub(r.measuredAt))
		}
		r.measuredAt = now
		r.reportStarvation(now)
		r.compareCodecs(now)
		// Layers may have fallen silent or come back.
		r.changed.layers = true
	}
	r.inBatch(func() {
		if measures {
			r.shared.storeDemand(r.selection.tallyDemand(func() { r.updateSubscribers(now) }))
		} else {
			r.updateSubscribers(now)
		}
		for _, sub := range r.members.subscribers {
			r.tickSubscriber(sub, now)
			r.viewersWait = r.viewersWait || sub.short > 0
		}
	})
}

// takeSpeakers notes that other people speak, or in another order.
func (r *Room) takeSpeakers() {
	r.changed.ranking = true
	r.changed.speakers = r.changed.speakers || r.assignment.scarce || r.assignment.apart
}

func (r *Room) tickLayer(l *Layer, now time.Time) {
	r.handling = l
	defer r.catchPacket()
	l.tick(now)
}

func (r *Room) tickSubscriber(sub *subscriber, now time.Time) {
	defer r.catchSubscriber(sub)
	sub.sendReports(now)
	sub.probe()
}

func (r *Room) release() {
	r.turn.take()
	defer r.turn.giveBack()
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
			for _, l := range r.members.layers {
				l.closed = true
				l.dropFrame()
				l.cache.clear()
			}
			return
		}
	}
}

// updateSubscribers decides anew what every slot shows, as far as something changed.
func (r *Room) updateSubscribers(now time.Time) {
	a := &r.assignment
	if r.changed.tables || r.changed.speakers || len(r.changed.muted) > 0 || r.changed.ranking && r.assignsSomebody() {
		a.rankPublications()
		r.changed.ranking = false
	}
	r.selection.round++
	a.scarce, a.apart = false, false
	for _, sub := range r.members.subscribers {
		r.updateSubscriber(sub, now)
		a.scarce = a.scarce || sub.waitsForSpeakers()
		a.apart = a.apart || sub.apart
	}
	r.changed.clear()
}

// assignsSomebody reports whether all slots of some subscriber are about to be assigned.
func (r *Room) assignsSomebody() bool {
	for _, sub := range r.members.subscribers {
		if sub.changed {
			return true
		}
	}
	return false
}

func (r *Room) updateSubscriber(sub *subscriber, now time.Time) {
	defer r.catchSubscriber(sub)
	a := &r.assignment
	anew := r.changed.tables || sub.changed
	a.moved = a.moved[:0]
	pair := sub.apart && r.changed.speakers
	for _, kind := range []Kind{KindAudio, KindVideo} {
		if !a.frozen && (anew || r.changed.speakers && a.hasSpeakerWithoutSlot(sub, kind) || a.concernedByMutes(sub, kind, r.changed.muted)) {
			a.assignSlots(sub, kind, now)
			pair = true
		}
	}
	if pair {
		a.moveSoundsBesidePictures(sub)
	}
	// Without a budget, slots do not depend on each other: those that did not move keep their layers.
	all := anew || r.changed.layers || sub.budget > 0
	if anew || r.changed.layers || sub.moved {
		slots := sub.slots
		if !all {
			slots = a.moved
		}
		r.selection.selectLayers(sub, slots, all, r.Level(), now)
	}
	told := false
	switch {
	case anew || sub.moved && all:
		told = r.shared.storeTable(sub)
	case sub.moved:
		r.shared.storeMoved(sub, a.moved)
		told = true
	}
	if told && r.cfg.OnSlots != nil {
		r.cfg.OnSlots(sub.peer)
	}
	sub.changed, sub.moved = false, false
}

// reselectAtKeyframe selects layers anew when a keyframe brings other spatial layers, while a slot can begin with that keyframe.
func (r *Room) reselectAtKeyframe(l *Layer, now time.Time) {
	r.changed.layers = true
	if now.Sub(l.described.arranged) >= r.cfg.MinPLIInterval {
		l.described.arranged = now
		r.updateSubscribers(now)
	}
}

// The three functions below are the room's wall against panics: a panic costs only the peer whose packet or slot was handled.

func (r *Room) catchPacket() {
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

func (r *Room) catchSubscriber(sub *subscriber) {
	caught := panics.Of(recover())
	if caught == nil {
		return
	}
	r.cfg.Panics.Report(r.log, caught, "a subscriber's slots broke forwarding: they are dropped", "peer", string(sub.peer))
	for _, s := range slices.Clone(sub.slots) {
		s.close()
	}
	r.broken(sub.peer)
}

func (r *Room) catchTask() {
	if caught := panics.Of(recover()); caught != nil {
		r.cfg.Panics.Report(r.log, caught, "a task broke forwarding")
	}
}

func (r *Room) broken(peer PeerID) {
	if r.cfg.OnBroken != nil {
		r.cfg.OnBroken(peer)
	}
}
