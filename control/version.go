package control

import (
	"slices"
	"strings"
)

// Protocol is the version of the control port. Raise it when a newer end needs something that an older one ignores.
const Protocol = 1

// CapabilityLiveMove means that the node understands Arrived, Settled and Drain, so rooms can move between living
// nodes.
const CapabilityLiveMove = "live-move"

// CapabilityBranch means that a media node serves Links, so that it can have a part of a room's people.
const CapabilityBranch = "branch"

// CapabilityStandby means that a media node stands by for the connections of others (control.Standby).
const CapabilityStandby = "standby"

// Capabilities are those of this program.
func Capabilities() []string { return []string{CapabilityBranch, CapabilityLiveMove} }

// Told returns Capabilities in the form that gossip uses.
func Told() string { return ToldWith() }

// ToldWith is Told for a node that has more capabilities.
func ToldWith(more ...string) string { return capabilitiesIn(append(Capabilities(), more...)) }

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
