package messaging

import (
	"time"

	"github.com/holdfast-rtc/holdfast/pin"
)

// Frame may be lost, repeated or reordered.
type Frame interface{ frame() }

// Batch is one node's to one user. Each different try has a higher number.
type Batch struct {
	Number   uint64
	Origin   Peer
	To       UserID
	Messages []Message

	// Previous is the batch before this one if its origin keeps that batch, else 0. A holder whose clients lack it must not go on.
	Previous uint64
	// Ages is empty, or how long ago another client got each message, which the origin has kept for who lacks it.
	Ages []time.Duration
}

// Route takes a batch to the receiver's directory.
type Route struct {
	Batch

	View    uint64 // origin's mark
	Overdue bool   // waits for no more directories
	Hops    int    // forwards so far
}

// Deliver takes a batch to one of its Holders.
type Deliver struct {
	Batch

	Holders []pin.BootID
	View    uint64 // mark of the directory that chose the holders
}

// Receipt is a holder's answer to the origin.
type Receipt struct {
	Number  uint64
	To      UserID
	Outcome Outcome
	Holders []pin.BootID
	View    uint64 // of the Deliver
	Level   uint64 // with OutcomeBehind: the clients here have the batches up to this one
}

// Outcome is a holder's.
type Outcome uint8

// The outcomes.
const (
	OutcomeSome   Outcome = 1 + iota // one client has it
	OutcomeAll                       // each client has it
	OutcomeNone                      // no client here may get it
	OutcomeBusy                      // clients must answer for others first
	OutcomeBehind                    // clients lack earlier batches, which the origin keeps
)

// Miss tells the origin that nobody gets the batch.
type Miss struct {
	Number    uint64
	To        UserID
	Unsettled bool // unknown yet
}

// Register tells a directory which users are here. Numbers grow.
type Register struct {
	Number   uint64
	Session  uint64 // grows when all is told again
	View     uint64 // sender's mark
	Complete bool   // all is told under View
	Here     []Key
	Gone     []Key
}

// Registered answers a Register.
type Registered struct{ Number uint64 }

// Resync asks for all registrations, unless done since Session.
type Resync struct{ Session uint64 }

func (Route) frame()      {}
func (Deliver) frame()    {}
func (Receipt) frame()    {}
func (Miss) frame()       {}
func (Register) frame()   {}
func (Registered) frame() {}
func (Resync) frame()     {}
