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

// BootID names one run of a process. The ids of one node sort by age.
type BootID string

// Fence orders the pins of a room: by epoch, and by nonce if the epochs are equal. The higher pin wins.
type Fence struct {
	// Epoch is the time of the claim in Unix milliseconds. Each move adds 1.
	Epoch uint64 `json:"epoch"`
	// Nonce is a string in JSON, because it is too large for a JavaScript number.
	Nonce uint64 `json:"nonce,string"`
}

const freshBit = 1 << 63

// Fresh reports whether the pin was claimed on an absent key. If the store had lost an owner's pin, the owner may
// reclaim the room from such a pin.
func (f Fence) Fresh() bool { return f.Nonce&freshBit != 0 }

// Compare returns -1, 0 or +1.
func (f Fence) Compare(g Fence) int {
	return cmp.Or(cmp.Compare(f.Epoch, g.Epoch), cmp.Compare(f.Nonce, g.Nonce))
}

// Less reports whether g fences f.
func (f Fence) Less(g Fence) bool { return f.Compare(g) < 0 }

// Ignores reports whether the maker of f cannot have known the lower fence g: f was claimed on an absent key, or has
// g's epoch, while every move raises the epoch.
func (f Fence) Ignores(g Fence) bool { return f.Fresh() || f.Epoch == g.Epoch }

// IsZero reports whether f is the fence of no pin.
func (f Fence) IsZero() bool { return f == Fence{} }

func (f Fence) String() string { return fmt.Sprintf("%d/%016x", f.Epoch, f.Nonce) }

// LogValue returns the String of the fence.
func (f Fence) LogValue() slog.Value { return slog.StringValue(f.String()) }

// Pin says where a room is placed. Two pins may be compared with ==.
type Pin struct {
	Fence   Fence       `json:"fence"`
	Node    ring.NodeID `json:"node"`
	Boot    BootID      `json:"boot"`
	Control string      `json:"control"` // host:port
}

// IsZero reports whether p is no placement.
func (p Pin) IsZero() bool { return p == Pin{} }
