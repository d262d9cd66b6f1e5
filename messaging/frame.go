package messaging

import "github.com/holdfast-rtc/holdfast/pin"

// Frame is what nodes say to each other. All frames may be lost, repeated and reordered.
type Frame interface{ frame() }

// Batch is messages to one user from one node, which has one at a time under way. Its numbers grow at each try that
// differs.
type Batch struct {
	Number   uint64
	Origin   Peer
	To       UserID
	Messages []Message
}

// Route takes a batch to the receiver's directory.
type Route struct {
	Batch

	View    uint64 // the mark of the origin's view
	Overdue bool   // the origin has waited long enough for directories that do not know yet
	Hops    int    // how often it was forwarded
}

// Deliver takes a batch to a holder. Holders are all who get it.
type Deliver struct {
	Batch

	Holders []pin.BootID
}

// Receipt is a holder's answer to the origin of a batch.
type Receipt struct {
	Number  uint64
	To      UserID
	Outcome Outcome
	Holders []pin.BootID
}

// Outcome is what a holder says of a batch.
type Outcome uint8

// The outcomes.
const (
	OutcomeSome Outcome = 1 + iota // one client has it, others may follow
	OutcomeAll                     // each client has it
	OutcomeNone                    // no client here may get it
	OutcomeBusy                    // its clients must answer for others first
)

// Miss is a directory's answer to the origin of a batch that nobody gets.
type Miss struct {
	Number    uint64
	To        UserID
	Unsettled bool // the directory does not know yet
}

// Register tells a directory which users have clients at the sender. Numbers grow.
type Register struct {
	Number   uint64
	Session  uint64 // grows when everything is told again
	View     uint64 // the mark of the sender's view
	Complete bool   // with this the directory knows all it should under View
	Here     []Key
	Gone     []Key
}

// Registered answers a Register.
type Registered struct{ Number uint64 }

// Resync asks a holder to tell its registrations again, unless it does so since Session.
type Resync struct{ Session uint64 }

func (Route) frame()      {}
func (Deliver) frame()    {}
func (Receipt) frame()    {}
func (Miss) frame()       {}
func (Register) frame()   {}
func (Registered) frame() {}
func (Resync) frame()     {}
