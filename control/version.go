package control

import (
	"slices"
	"strings"
)

// Protocol is the control port's version. Raise it when a newer end needs what an older one ignores: unknown fields,
// messages and events.
const Protocol = 1

// CapabilityLiveMove means that rooms move while both nodes live; Arrived, Settled and Drain are understood.
const CapabilityLiveMove = "live-move"

// Capabilities are this program's beyond the first version.
func Capabilities() []string { return []string{CapabilityLiveMove} }

// Told is Capabilities as gossip carries them.
func Told() string { return capabilitiesIn(Capabilities()) }

const (
	maxCapabilities    = 64
	maxCapabilityBytes = 32
)

// capabilitiesIn drops all but short lower-case words.
func capabilitiesIn(told []string) string {
	var known []string
	for _, word := range told[:min(len(told), maxCapabilities)] {
		foreign := func(c rune) bool { return (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' }
		if word != "" && len(word) <= maxCapabilityBytes && !strings.ContainsFunc(word, foreign) {
			known = append(known, word)
		}
	}
	slices.Sort(known)
	return strings.Join(slices.Compact(known), ",")
}
