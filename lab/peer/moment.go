package peer

import "time"

// Step is a step of getting a connection.
type Step string

// The steps, in the order of a move.
const (
	StepRestart Step = "restart" // the server's word that the room lives elsewhere now
	StepOffer   Step = "offer"   // about to be sent
	StepAnswer  Step = "answer"  // arrived
	StepICE     Step = "ice"     // a pair works
	StepDTLS    Step = "dtls"    // keys are there: media can flow
	StepFirst   Step = "first"   // a stream's first packet on this connection, when it had one on an older; and the first sound after one on an older
)

// StepWaiting is no step of a move: the server's word that the peer waits in line, or has another place there.
const StepWaiting Step = "waiting"

// Moment is when a step was reached.
type Moment struct {
	At         time.Time
	Step       Step
	Connection int // which one of the peer's, counted from 1; of StepRestart the one to be replaced
	Epoch      uint64
	Stream     StreamID // of StepFirst
}

// observe tells whoever asked.
func (p *Peer) observe(m Moment) {
	if p.opts.Observe != nil {
		p.opts.Observe(m)
	}
}
