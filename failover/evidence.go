package failover

import (
	"fmt"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/control"
)

// Stream is the state of the Watch stream to a node.
type Stream string

// The states of a Watch stream.
const (
	StreamNever  Stream = "never open" // no heartbeat of this boot has come
	StreamBroken Stream = "broken"     // heartbeats came, and the stream broke
)

// Control is the result of a new connection to the control address.
type Control string

// The answers of a control address.
const (
	ControlRefused   Control = "refused"      // nothing listens
	ControlSilent    Control = "silent"       // a timeout, no route, a reset, a failed handshake
	ControlSame      Control = "same boot"    // this process answers
	ControlNewer     Control = "newer boot"   // a later process of this node answers
	ControlOlder     Control = "older boot"   // an earlier process of this node answers
	ControlOtherNode Control = "another node" // another node has the address now
)

// Media is the result of a connected UDP socket to the media address.
type Media string

// The answers of a media address.
const (
	MediaRefused Media = "refused" // ICMP port unreachable: nothing is bound
	MediaSilent  Media = "silent"  // a live node does not answer strangers, either
)

// Verdict is the conclusion from evidence.
type Verdict string

// The verdicts.
const (
	VerdictAlive   Verdict = "alive"
	VerdictSuspect Verdict = "suspect" // ask again; gossip decides
	VerdictDead    Verdict = "dead"    // proven
)

// Evidence is what was observed of one boot at one moment.
type Evidence struct {
	Stream  Stream
	Control Control
	Media   Media
}

// Verdict evaluates the evidence. A newer boot proves the death of the older one. Otherwise all three
// pieces must agree, because each has an innocent cause: a proxy, a firewall, a listener that was
// closed early. An address that another node has counts as refused.
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
	default:
		return VerdictSuspect
	}
}

// String returns the form for logs.
func (e Evidence) String() string {
	return fmt.Sprintf("stream %s, control %s, media %s", e.Stream, e.Control, e.Media)
}

// controlOf compares a hello with the expected boot.
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
