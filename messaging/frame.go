package messaging

import "github.com/holdfast-rtc/holdfast/pin"

// Frame passes between nodes. It may be lost, repeated or reordered.
type Frame interface{ frame() }

// Batch is messages from one node to one user; one is under way at a time. Each try that differs has a higher number.
type Batch struct {
	Number   uint64
	Origin   Peer
	To       UserID
	Messages []Message
}

// Route takes a batch to the receiver's directory.
type Route struct {
	Batch

	View    uint64 // mark of the origin's view
	Overdue bool   // the origin waits for unsettled directories no longer
	Hops    int    // forwards so far
}

// Deliver takes a batch to a holder. Holders has all of them.
type Deliver struct {
	Batch

	Holders []pin.BootID
}

// Receipt is a holder's answer to the origin.
type Receipt struct {
	Number  uint64
	To      UserID
	Outcome Outcome
	Holders []pin.BootID
}

// Outcome is a holder's of a batch.
type Outcome uint8

// The outcomes.
const (
	OutcomeSome Outcome = 1 + iota // one client has it, others may follow
	OutcomeAll                     // each client has it
	OutcomeNone                    // no client here may get it
	OutcomeBusy                    // its clients must answer for others first
)

// Miss is a directory's answer to the origin: nobody gets the batch.
type Miss struct {
	Number    uint64
	To        UserID
	Unsettled bool // the directory does not know yet
}

// Register tells a directory which users have clients here. Numbers grow.
type Register struct {
	Number   uint64
	Session  uint64 // grows when everything is told again
	View     uint64 // mark of the sender's view
	Complete bool   // the directory now knows all it should under View
	Here     []Key
	Gone     []Key
}

// Registered answers a Register.
type Registered struct{ Number uint64 }

// Resync asks for all registrations again, unless that was done since Session.
type Resync struct{ Session uint64 }

func (Route) frame()      {}
func (Deliver) frame()    {}
func (Receipt) frame()    {}
func (Miss) frame()       {}
func (Register) frame()   {}
func (Registered) frame() {}
func (Resync) frame()     {}
