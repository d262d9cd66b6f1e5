package failover

import (
	"fmt"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/control"
)

// Stream is what is known of the Watch stream of a node.
type Stream string

// The states of a Watch stream.
const (
	StreamNever  Stream = "never open" // no beat of this boot was ever heard here
	StreamBroken Stream = "broken"     // it beat once, and cannot be held now
)

// Control is what a fresh connection to the control address found.
type Control string

// The answers of a control address.
const (
	ControlRefused   Control = "refused"      // the kernel there refuses: nothing listens
	ControlSilent    Control = "silent"       // a time-out, no route, a reset, a failed handshake
	ControlSame      Control = "same boot"    // the process answers
	ControlNewer     Control = "newer boot"   // a later process of this node answers
	ControlOlder     Control = "older boot"   // an earlier process of this node answers
	ControlOtherNode Control = "another node" // the address belongs to somebody else now
)

// Media is what a connected UDP socket to the media address found.
type Media string

// The answers of a media address.
const (
	MediaRefused Media = "refused" // ICMP port unreachable: nothing is bound there
	MediaSilent  Media = "silent"  // which is also what a living node says to a stranger
)

// Verdict is what evidence allows to be said.
type Verdict string

// The verdicts.
const (
	VerdictAlive   Verdict = "alive"
	VerdictSuspect Verdict = "suspect" // redial; leave it to gossip
	VerdictDead    Verdict = "dead"    // proven
)

// Evidence is what was observed of one boot at one time.
type Evidence struct {
	Stream  Stream
	Control Control
	Media   Media
}

// Verdict judges. A newer boot of the node proves the death of the older by itself. Otherwise all
// three pieces must agree, because each alone has an innocent reason: a stream breaks
// with a proxy or a keepalive, a listener is refused by a REJECT rule or closed early, a
// media port is refused by a rule for UDP. An address that belongs to another
// node counts as refused: whoever was there listens there no more.
func (e Evidence) Verdict() Verdict {
	switch e.Control {
	case ControlSame:
		return VerdictAlive
	case ControlNewer:
		return VerdictDead
	case ControlRefused, ControlOtherNode:
		if e.Stream == StreamBroken && e.Media == MediaRefused {
			return VerdictDead
		}
		return VerdictSuspect
	case ControlSilent, ControlOlder:
		return VerdictSuspect
	default:
		return VerdictSuspect
	}
}

// String is the form for logs.
func (e Evidence) String() string {
	return fmt.Sprintf("stream %s, control %s, media %s", e.Stream, e.Control, e.Media)
}

// controlOf says what a hello means for node.
func controlOf(node cluster.Node, hello control.Hello) Control {
	switch {
	case hello.Node != node.ID:
		return ControlOtherNode
	case hello.Boot == node.Boot:
		return ControlSame
	case hello.Boot.Newer(node.Boot):
		return ControlNewer
	default:
		return ControlOlder
	}
}
