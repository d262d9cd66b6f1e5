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

// BootID names a run of a process. A node's sort by age.
type BootID string

// Fence orders a room's pins by epoch, then nonce. The higher wins.
type Fence struct {
	Epoch uint64 `json:"epoch"`        // Unix milliseconds of the claim, +1 a move
	Nonce uint64 `json:"nonce,string"` // too long for a JavaScript number
}

const freshBit = 1 << 63

// Fresh means that the pin was claimed on an absent key. An owner whose pin the store lost may reclaim from it.
func (f Fence) Fresh() bool { return f.Nonce&freshBit != 0 }

// Compare returns -1, 0 or +1.
func (f Fence) Compare(g Fence) int {
	return cmp.Or(cmp.Compare(f.Epoch, g.Epoch), cmp.Compare(f.Nonce, g.Nonce))
}

// Less reports whether g fences f.
func (f Fence) Less(g Fence) bool { return f.Compare(g) < 0 }

// Ignores means that f's maker cannot have known the lower fence g. Every move raises the epoch.
func (f Fence) Ignores(g Fence) bool { return f.Fresh() || f.Epoch == g.Epoch }

// IsZero means no pin.
func (f Fence) IsZero() bool { return f == Fence{} }

func (f Fence) String() string { return fmt.Sprintf("%d/%016x", f.Epoch, f.Nonce) }

// LogValue is String.
func (f Fence) LogValue() slog.Value { return slog.StringValue(f.String()) }

// Pin is a room's placement. It is comparable.
type Pin struct {
	Fence   Fence       `json:"fence"`
	Node    ring.NodeID `json:"node"`
	Boot    BootID      `json:"boot"`
	Control string      `json:"control"` // host:port
}

// IsZero means no placement.
func (p Pin) IsZero() bool { return p == Pin{} }
