package control

import (
	"slices"
	"strings"
)

// Protocol is the control port's version. Raise it when a newer end needs what an older one ignores.
const Protocol = 1

// CapabilityLiveMove means that rooms move between living nodes: Arrived, Settled and Drain are understood.
const CapabilityLiveMove = "live-move"

// Capabilities are this program's.
func Capabilities() []string { return []string{CapabilityLiveMove} }

// Told is Capabilities in gossip.
func Told() string { return capabilitiesIn(Capabilities()) }

const (
	maxCapabilities    = 64
	maxCapabilityBytes = 32
)

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
