package control

import (
	"slices"
	"strings"
)

// Protocol is the version of the control port that this program speaks. It is raised when a newer end must know what an older one does:
// an end of another version ignores fields, messages and events that it does not know.
const Protocol = 1

// CapabilityLiveMove says that rooms move while both nodes live, and that Arrived, Settled and Drain are understood.
const CapabilityLiveMove = "live-move"

// Capabilities are what this program can do beyond the first version.
func Capabilities() []string { return []string{CapabilityLiveMove} }

// Told is Capabilities as gossip carries them.
func Told() string { return capabilitiesIn(Capabilities()) }

const (
	maxCapabilities    = 64
	maxCapabilityBytes = 32
)

// capabilitiesIn leaves out what is no short lower-case word.
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
