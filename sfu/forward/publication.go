package forward

import (
	"cmp"
	"slices"
	"time"
)

type trackKey struct {
	peer   PeerID
	source Source
}

// soundOf returns the sound that belongs to a picture. A browser plays both in step if they are in one MediaStream.
func (key trackKey) soundOf() trackKey {
	if key.source == SourceScreen {
		return trackKey{peer: key.peer, source: SourceScreenAudio}
	}
	return trackKey{peer: key.peer, source: SourceMicrophone}
}

func (e Entry) key() trackKey { return trackKey{peer: e.Peer, source: e.Source} }

func (c *LayerConfig) key() trackKey { return trackKey{peer: c.Peer, source: c.Source} }

// publication is one source of one peer.
type publication struct {
	key  trackKey
	kind Kind
	// layers is empty if the source was muted before it began, or is gone.
	layers []*Layer
	muted  bool
	gone   bool

	arrival   int
	speaking  bool
	lastSpoke time.Time

	present, chosen uint64
	choice          int

	lacked bool
	// lackTold is when the publisher was last told.
	lackTold time.Time

	round uint64
	rungs []layerChoice
	// whole are the choices with all temporal layers.
	whole  []layerChoice
	levels []int
}

func (p *publication) layerChoices(look uint64, now time.Time) []layerChoice {
	if p.round != look {
		p.round, p.whole = look, p.whole[:0]
		for _, l := range p.layers {
			p.whole = l.appendChoices(p.whole, now)
		}
		p.rungs = withTemporal(p.rungs[:0], usableByHeight(p.whole))
		p.setLevels()
	}
	return p.rungs
}

// setLevels gives each choice the room's level from which on it is sent. No choice has a lower level than a cheaper one.
func (p *publication) setLevels() {
	if len(p.levels) != len(p.rungs) {
		p.levels = slices.Repeat([]int{-1}, len(p.rungs))
	}
	screen, least := p.key.source == SourceScreen, Level(0)
	for i := range p.rungs {
		if i == 0 {
			continue
		}
		own := levelOf(p.rungs[i].bits, screen, p.levels[i])
		p.levels[i] = int(own)
		least = max(least, own)
		p.rungs[i].level = least
	}
}

// contends reports whether the publication competes for slots by speaking. Screens do not, and muted pictures need no slot.
func (p *publication) contends() bool {
	return !p.key.source.shared() && (p.kind == KindAudio || !p.muted)
}

// comparePlaces orders by who should keep a slot: speakers, then the unmuted, then who spoke last.
func comparePlaces(a, b *publication) int {
	return cmp.Or(
		-compareBool(a.speaking, b.speaking),
		compareBool(a.muted, b.muted),
		-a.lastSpoke.Compare(b.lastSpoke),
	)
}
