package messaging

import (
	"time"

	"github.com/holdfast-rtc/holdfast/pin"
)

// Frame is a message between two nodes. It may be lost, repeated or reordered.
type Frame interface{ frame() }

// Batch has messages from one node to one user. A batch that differs from an earlier one has a higher number.
type Batch struct {
	Number   uint64
	Origin   Peer
	To       UserID
	Messages []Message

	// Previous is the number of the batch before this one if the origin keeps that batch, and 0 otherwise. A holder
	// whose clients lack the previous batch must not hand out this one.
	Previous uint64
	// Ages is empty in a new batch. In a batch that the origin has kept, it says how long ago another client got each
	// message.
	Ages []time.Duration
}

// Route takes a batch from its origin to the directory of the receiver.
type Route struct {
	Batch

	// View is the mark of the origin's view.
	View uint64
	// Overdue asks the directory to answer even if some nodes have not registered yet.
	Overdue bool
	// Hops counts how often directories have forwarded the route.
	Hops int
}

// Deliver takes a batch from the directory to one of the Holders.
type Deliver struct {
	Batch

	Holders []pin.BootID
	// View is the mark of the view under which the directory chose the holders.
	View uint64
}

// Receipt is a holder's answer to the origin of a batch.
type Receipt struct {
	Number  uint64
	To      UserID
	Outcome Outcome
	Holders []pin.BootID
	// View is the View of the Deliver.
	View uint64
	// Level comes with OutcomeBehind: the clients here have the batches up to this number.
	Level uint64
}

// Outcome says what became of a batch at one holder.
type Outcome uint8

// These are the outcomes.
const (
	// One client here has the batch.
	OutcomeSome Outcome = 1 + iota
	// Each client here that may get the batch has it.
	OutcomeAll
	// No client here may get the batch.
	OutcomeNone
	// The clients here have too much unanswered to be handed more.
	OutcomeBusy
	// The clients here lack earlier batches, which the origin keeps.
	OutcomeBehind
)

// Miss tells the origin that no holder is known for the receiver.
type Miss struct {
	Number uint64
	To     UserID
	// Unsettled means that the directory does not know yet, because some nodes have not registered.
	Unsettled bool
}

// Register tells a directory which users have clients at a node. Each Register of a node has a higher number.
type Register struct {
	Number uint64
	// Session grows each time the node registers all its users anew.
	Session uint64
	// View is the mark of the sender's view.
	View uint64
	// Complete means that the directory now knows all of the sender's users under View.
	Complete bool
	Here     []Key
	Gone     []Key
}

// Registered is the answer to the Register of this number.
type Registered struct{ Number uint64 }

// Resync asks a node to register all its users anew, unless it has done so since Session.
type Resync struct{ Session uint64 }

func (Route) frame()      {}
func (Deliver) frame()    {}
func (Receipt) frame()    {}
func (Miss) frame()       {}
func (Register) frame()   {}
func (Registered) frame() {}
func (Resync) frame()     {}
