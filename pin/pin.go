// Package pin says what a placement is: the node a room lives on, the boot of
// that node, and the fence (epoch and claim nonce) that orders it against every
// other placement of the same room. It promises a total order and a canonical
// text form that round-trips byte for byte, so that a store can compare and set
// pins as opaque values. It knows no store and no network.
package pin

import (
	"cmp"
	"fmt"
	"log/slog"

	"github.com/holdfast-rtc/holdfast/ring"
)

// BootID names one run of a node's process. It begins with the start time in
// Unix milliseconds, as 13 digits, so boots of one node sort by age as text.
type BootID string

// Fence orders the pins of one room: by epoch, then by nonce. The higher fence
// wins everywhere. The nonce is random per claim, so that two claims which
// a lost write gave the same epoch are still not equal.
type Fence struct {
	Epoch uint64 `json:"epoch"`        // Unix milliseconds of the first claim, +1 per re-homing
	Nonce uint64 `json:"nonce,string"` // random per claim but for its highest bit: see Fresh. Too long for a JavaScript number
}

// freshBit is set in the nonce of a pin that was claimed on an absent key.
const freshBit = 1 << 63

// Fresh reports whether the pin was claimed where the store had none, by somebody
// who therefore did not know whether the room is open somewhere. All other pins were put in the
// place of one that was known. An owner whose pin the store forgot need not yield to a fresh one.
func (f Fence) Fresh() bool { return f.Nonce&freshBit != 0 }

// Compare returns -1, 0 or +1 as f is lower than, equal to or higher than g.
func (f Fence) Compare(g Fence) int {
	return cmp.Or(cmp.Compare(f.Epoch, g.Epoch), cmp.Compare(f.Nonce, g.Nonce))
}

// Less reports whether f is outranked by g.
func (f Fence) Less(g Fence) bool { return f.Compare(g) < 0 }

// IsZero reports whether f is the fence of no pin at all.
func (f Fence) IsZero() bool { return f == Fence{} }

// String gives the form used in logs: "epoch/nonce", the nonce in hex.
func (f Fence) String() string { return fmt.Sprintf("%d/%016x", f.Epoch, f.Nonce) }

// LogValue makes structured logs show the same form as String.
func (f Fence) LogValue() slog.Value { return slog.StringValue(f.String()) }

// Pin is one room's placement. It is a comparable value.
type Pin struct {
	Fence   Fence       `json:"fence"`
	Node    ring.NodeID `json:"node"`
	Boot    BootID      `json:"boot"`
	Control string      `json:"control"` // host:port of the node's control service, to ask a boot we do not know
}

// IsZero reports whether p places nothing.
func (p Pin) IsZero() bool { return p == Pin{} }
