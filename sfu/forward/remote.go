package forward

import (
	"encoding/binary"
	"slices"
	"time"
)

// A layer of a publisher at another media node is a remote layer here: its packets come over a link, and only while somebody here wants
// them. The publisher's node gives them to the link by a Tap.

// A tap begins with the newest keyframe if no more packets than these followed it. Else the publisher is asked for another one.
const tapReplayPackets = 64

// RemoteState is what the publisher's node tells other nodes of a layer.
type RemoteState struct {
	// Alive says that media come.
	Alive bool
	// Height is that of the last keyframe, in lines; 0 is unknown.
	Height int
	// BitsPerSecond is assumed until it is measured.
	BitsPerSecond uint64
	// Speaks says, of a microphone, that its person speaks now.
	Speaks bool
}

// Tap takes the packets of a layer to another node. Its methods run on the room's loop, within a batch, and must not block or call the room.
type Tap interface {
	// Packet is given a whole RTP packet, as the publisher sent it, and its number, extended beyond 16 bits. It must not keep or change
	// the packet.
	Packet(packet []byte, number uint32)
	// Report is given the times of the publisher's sender reports.
	Report(ntp uint64, rtp uint32)
	// Repeat sends the packet again whose number ends in these bits.
	Repeat(number uint16)
}

// Watcher hears of all layers, of remote ones, too. Its methods run on the room's loop and must not block or call the room.
type Watcher interface {
	Added(l *Layer)
	Dropped(l *Layer)
	// Spoke is called when somebody begins or ceases to speak.
	Spoke()
}

// Watch tells a watcher of all layers that there are, and of each change until Unwatch.
func (r *Room) Watch(w Watcher) {
	r.post(func() {
		r.watchers = append(r.watchers, w)
		for _, p := range r.members.publications {
			for _, l := range p.layers {
				w.Added(l)
			}
		}
	})
}

// Unwatch ends what Watch began.
func (r *Room) Unwatch(w Watcher) {
	r.post(func() { r.watchers = slices.DeleteFunc(r.watchers, func(other Watcher) bool { return other == w }) })
}

// Config is what the layer was made with.
func (l *Layer) Config() LayerConfig { return l.cfg }

// Remote reports whether the publisher is at another media node.
func (l *Layer) Remote() bool { return l.cfg.Via != nil }

// Tell takes what the publisher's node says of a remote layer. It may wait for the loop: that somebody speaks, or no more, is said once.
func (l *Layer) Tell(state RemoteState) {
	l.room.post(func() {
		if l.closed || state == l.feed.state {
			return
		}
		l.feed.state = state
		l.noteSpeaks(state.Speaks)
		if state.Height > 0 {
			l.height = state.Height
		}
		l.room.changed.layers = true
	})
}

// noteSpeaks is for a remote layer, which may not cross while its person is silent: only the publisher's node hears them begin.
func (l *Layer) noteSpeaks(speaks bool) {
	if l.cfg.Source == SourceMicrophone && l.room.speakers.tell(l.cfg.Peer, speaks) {
		l.room.takeSpeakers()
		l.room.tellSpoke()
	}
}

func (r *Room) tellSpoke() {
	for _, w := range r.watchers {
		w.Spoke()
	}
}

// RemoteStates returns what other nodes are to be told of layers, in their order, or false if the loop has ended. It waits for the loop.
func (r *Room) RemoteStates(layers []*Layer) (states []RemoteState, ok bool) {
	answer := make(chan []RemoteState, 1)
	r.post(func() {
		now, all := time.Now(), make([]RemoteState, 0, len(layers))
		for _, l := range layers {
			speaks := l.cfg.Source == SourceMicrophone && r.speakers.speaks(l.cfg.Peer)
			all = append(all, RemoteState{Alive: l.alive(now), Height: l.height, BitsPerSecond: l.bits(), Speaks: speaks})
		}
		answer <- all
	})
	select {
	case states = <-answer:
		return states, true
	case <-r.done:
		return nil, false
	}
}

// Tap begins to give the layer's packets to another node: first the newest keyframe and what followed it.
func (l *Layer) Tap(tap Tap) {
	l.room.post(func() {
		if l.closed || slices.Contains(l.taps, tap) {
			return
		}
		l.room.handling = l
		defer l.room.catchPacket()
		l.taps = append(l.taps, tap)
		l.noteWanted()
		if l.cfg.Kind == KindVideo && !l.replayTo(tap) {
			l.requestKeyframe(nil, time.Now())
		}
	})
}

// Untap ends what Tap began.
func (l *Layer) Untap(tap Tap) {
	l.room.post(func() {
		l.taps = slices.DeleteFunc(l.taps, func(other Tap) bool { return other == tap })
		l.noteWanted()
	})
}

// Repeat has a tap send packets again. It does not block; a busy loop ignores it.
func (l *Layer) Repeat(tap Tap, numbers []uint16) {
	l.room.try(func() {
		for _, number := range numbers {
			tap.Repeat(number)
		}
	})
}

// KeyframeRequested passes on that another node's viewers need a keyframe, at most once in Config.MinPLIInterval. It does not block.
func (l *Layer) KeyframeRequested() {
	l.room.try(func() {
		if !l.closed {
			l.requestKeyframe(nil, time.Now())
		}
	})
}

// replayTo gives a tap the newest keyframe and what followed it, and returns false if the cache lacks some of that or it is too much.
func (l *Layer) replayTo(tap Tap) bool {
	first, last := l.keyframe.First, l.tracker.Highest
	if first == 0 || last-first >= tapReplayPackets {
		return false
	}
	for number := first; number <= last; number++ {
		if l.cache.get(number) == nil {
			return false
		}
	}
	for number := first; number <= last; number++ {
		p := l.cache.get(number)
		tap.Packet(p.original(), number)
	}
	return true
}

// giveToTaps is for a packet that no slot has patched yet.
func (l *Layer) giveToTaps(p *Packet) {
	for _, tap := range l.taps {
		tap.Packet(p.buffer[:p.length], p.sequence)
	}
}

// original undoes what slots patch in place: the numbers of pictures and frames, and the payload types of redundant sound.
func (p *Packet) original() []byte {
	payload := p.payload()
	p.picture.Patch(payload, p.picture.PictureID, p.picture.TL0)
	if p.redundancy.Blocks > 0 {
		p.redundancy.SetPayloadTypes(payload, p.layer.cfg.Codec.PayloadType)
	}
	if at := p.header.Descriptor; p.described {
		binary.BigEndian.PutUint16(p.buffer[at.At+1:], p.frame.Number)
	}
	return p.buffer[:p.length]
}
