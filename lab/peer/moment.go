package peer

import "time"

// Step is a step of making a connection.
type Step string

// The steps, in the order of a move.
const (
	StepRestart Step = "restart" // the room lives elsewhere now
	StepOffer   Step = "offer"
	StepAnswer  Step = "answer"
	StepICE     Step = "ice"   // a pair works, or that of the node that goes on
	StepDTLS    Step = "dtls"  // media can flow
	StepFirst   Step = "first" // a stream's, or any audio's, first packet on a newer connection or from its next node
)

// StepContinued is no step of a move either: the peer is told that its media goes on at another node as it is.
const StepContinued Step = "continued"

// StepWaiting is no step of a move: the peer waits in line, or its place has changed.
const StepWaiting Step = "waiting"

// Moment is when a step was reached.
type Moment struct {
	At         time.Time
	Step       Step
	Connection int // counted from 1; of StepRestart the one to be replaced
	Hop        int // how many times another node has gone on with the connection
	Epoch      uint64
	Stream     StreamID
}

func (p *Peer) observe(m Moment) {
	if p.opts.Observe != nil {
		p.opts.Observe(m)
	}
}
