package forward

import (
	"time"

	"github.com/holdfast-rtc/holdfast/sfu/forward/renumber"
)

// Position says where the stream of a slot stands, so that another node can go on with it.
type Position struct {
	Entry
	// Begun says that something was sent.
	Begun bool
	renumber.Numbers
	// Layer is the publisher's SSRC of the layer that is sent, to which Numbers.Adds belongs; 0 for none.
	Layer uint32
}

// Continuation is where a new slot begins. Without one it begins at random numbers.
type Continuation struct {
	Position
	// Sequence and RTXSequence are the last ones that were used.
	Sequence, RTXSequence uint16
	// At is when the position was true.
	At time.Time
	// Behind says that the other node may have gone on after At, so that counters of pictures leave a gap.
	Behind bool
}

// The gaps are less than half of each counter's range, and more than the pictures of some seconds.
const (
	gapPictures = 1 << 10
	gapTL0      = 1 << 6
)

// Positions returns those of a peer's slots, by mid. It waits for the loop, and returns nil once that has ended.
func (r *Room) Positions(peer PeerID) map[string]Position {
	told := make(chan map[string]Position, 1)
	r.post(func() {
		// The channel is closed even if reading the slots panics.
		defer close(told)
		positions := map[string]Position{}
		if sub := r.members.subscribers[peer]; sub != nil {
			for _, s := range sub.slots {
				positions[s.cfg.Mid] = s.standing()
			}
		}
		told <- positions
	})
	select {
	case positions := <-told:
		return positions
	case <-r.done:
		return nil
	}
}

func (s *Slot) standing() Position {
	p := Position{Entry: s.entry, Begun: s.rewriter.Begun()}
	var number uint64
	if p.Numbers, number = s.rewriter.Numbers(); number != 0 {
		if l := s.room.members.layers[number]; l != nil {
			p.Layer = l.cfg.SSRC
		}
	}
	return p
}

// continueAt begins a new slot behind the numbers of another node.
func (s *Slot) continueAt(c *Continuation) {
	if c == nil {
		return
	}
	s.rtxSequence = c.RTXSequence + 1
	if !c.Begun {
		return
	}
	n := c.Numbers
	if c.Behind {
		n.PictureID += gapPictures
		n.TL0 += gapTL0
		n.Frame += gapPictures
	}
	s.rewriter = renumber.Continue(c.Sequence, n, memoryOf(s.cfg.Kind))
	s.newest, s.newestArrived = c.At, c.At
}

// align goes on with the layer that the other node sent last. It is called at the first packet of a slot.
func (s *Slot) align(l *Layer) {
	c := s.cfg.Continue
	if c == nil {
		return
	}
	s.cfg.Continue = nil
	if c.Layer != 0 && c.Layer == l.cfg.SSRC {
		s.rewriter.Align(c.Adds)
	}
}
