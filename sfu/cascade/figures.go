package cascade

import (
	"sync/atomic"

	"github.com/holdfast-rtc/holdfast/control"
)

// figures count what crosses a link, each way, without its loop.
type figures struct{ sent, received direction }

type direction struct {
	packets, lost atomic.Uint64
	layers, known atomic.Uint32
}

func (d *direction) told() *control.LinkFigures {
	return &control.LinkFigures{Packets: d.packets.Load(), Lost: d.lost.Load(), Layers: d.layers.Load(), Known: d.known.Load()}
}

// Figures returns what has crossed since the link began. It waits for nobody.
func (l *Link) Figures() (sent, received *control.LinkFigures) {
	return l.figures.sent.told(), l.figures.received.told()
}

// count is for Run.
func (l *Link) count() {
	var sent, received uint32
	for _, o := range l.outlets {
		if o.crosses {
			sent++
		}
	}
	for _, i := range l.inlets {
		if i.wanted {
			received++
		}
	}
	l.figures.sent.layers.Store(sent)
	l.figures.sent.known.Store(uint32(len(l.outlets)))
	l.figures.received.layers.Store(received)
	l.figures.received.known.Store(uint32(len(l.inlets)))
}
