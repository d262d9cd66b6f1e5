package pin

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-rtc/holdfast/ring"
)

// These are reasons why a room moved.
const (
	WhyDrain    = "its node drains"
	WhySilent   = "its node is silent"
	WhyOperator = "an operator moved it"
	WhyDamaged  = "its pin was damaged"
	// PassedOver is how the reason of a claim begins.
	PassedOver = "passed over "
)

// MaxChanges is how many changes of a room the store remembers.
const MaxChanges = 16

// Change is a move of a room, or a claim that passed nodes over.
type Change struct {
	// At is by the store's clock.
	At time.Time `json:"at"`
	// Epoch is the new pin's.
	Epoch uint64 `json:"epoch"`
	// From is empty for a claim and for the repair of a damaged pin.
	From ring.NodeID `json:"from"`
	To   ring.NodeID `json:"to"`
	Why  string      `json:"why"`
}

const (
	maxWhyBytes  = 300
	changeFields = 5
)

// IsClaim reports whether the change is a claim and not a move.
func (c Change) IsClaim() bool { return c.From == "" && strings.HasPrefix(c.Why, PassedOver) }

// Encode returns "epoch|from|to|why".
func (c Change) Encode() string {
	why := strings.ToValidUTF8(c.Why[:min(len(c.Why), maxWhyBytes)], "")
	return fmt.Sprintf("%d|%s|%s|%s", c.Epoch, c.From, c.To, why)
}

// ParseChange reads "milliseconds|epoch|from|to|why". The store puts the time in front.
func ParseChange(text string) (Change, error) {
	fields := strings.SplitN(text, "|", changeFields)
	if len(fields) != changeFields || len(fields[4]) > maxWhyBytes {
		return Change{}, fmt.Errorf("a change of %d bytes is not of this version", len(text))
	}
	at, err := strconv.ParseInt(fields[0], 10, 64)
	if err != nil {
		return Change{}, fmt.Errorf("the time of a change: %w", err)
	}
	epoch, err := strconv.ParseUint(fields[1], 10, 64)
	if err != nil {
		return Change{}, fmt.Errorf("the epoch of a change: %w", err)
	}
	return Change{At: time.UnixMilli(at).UTC(), Epoch: epoch, From: ring.NodeID(fields[2]), To: ring.NodeID(fields[3]), Why: fields[4]}, nil
}
