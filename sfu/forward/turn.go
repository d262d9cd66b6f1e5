package forward

// hereSlots is to how many slots a reader itself forwards a packet of sound. More slots would keep the reader from its socket, and their
// packets fill a batch anyway.
const hereSlots = 4

// turn is the right to change a room. The loop holds it in each of its steps. A reader that has sound for few slots takes the turn if it is
// free, and forwards the packet: waking the loop's goroutine for it would cost several times as much. A reader never waits for the turn.
type turn struct {
	// held has a token while somebody holds the turn. A mutex would keep a test's clock from going on while a writer waits.
	held chan struct{}
	// slots is hereSlots; tests set it to leave all packets to the loop.
	slots int
}

func newTurn() turn { return turn{held: make(chan struct{}, 1), slots: hereSlots} }

func (t *turn) take() { t.held <- struct{}{} }

func (t *turn) tryTake() bool {
	select {
	case t.held <- struct{}{}:
		return true
	default:
		return false
	}
}

func (t *turn) giveBack() { <-t.held }

// forwardHere forwards a packet of sound on the caller's goroutine. It returns false if the loop must do that.
func (r *Room) forwardHere(p *Packet) (done bool) {
	if !r.turn.tryTake() {
		return false
	}
	defer r.turn.giveBack()
	l := p.layer
	if len(l.slots) > r.turn.slots || len(l.taps) > 0 {
		return false
	}
	defer r.catchPacket()
	done = true
	if len(l.slots) > 1 {
		r.inBatch(func() { r.handle(p) })
	} else {
		r.handle(p)
	}
	return done
}
