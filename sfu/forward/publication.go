package forward

import (
	"slices"
	"time"
)

// publication is one source of one peer.
type publication struct {
	key    trackKey
	kind   Kind
	layers []*Layer // none: muted before it began, or gone
	muted  bool
	gone   bool

	arrival   int
	speaking  bool
	lastSpoke time.Time

	present, chosen uint64
	choice          int

	lacked   bool
	lackTold time.Time // when the publisher was told

	looked uint64
	rungs  []layerChoice
	whole  []layerChoice // with all temporal layers
	levels []int
}

func (p *publication) ladder(look uint64, now time.Time) []layerChoice {
	if p.looked != look {
		p.looked, p.whole = look, p.whole[:0]
		for _, l := range p.layers {
			p.whole = l.choices(p.whole, now)
		}
		p.rungs = withTemporal(p.rungs[:0], ladder(p.whole))
		p.place()
	}
	return p.rungs
}

// A level is never below that of the rung before.
func (p *publication) place() {
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

// Muted pictures need no place.
func (p *publication) contends() bool {
	return !p.key.source.shared() && (p.kind == KindAudio || !p.muted)
}
