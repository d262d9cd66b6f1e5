package failover

import (
	"fmt"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/control"
)

// Stream is the state of the Watch stream to a node.
type Stream string

// Its values.
const (
	StreamNever  Stream = "never open" // no heartbeat came
	StreamBroken Stream = "broken"     // it broke after heartbeats
)

// Control is the result of a new connection to the control address.
type Control string

// Its values.
const (
	ControlRefused   Control = "refused"
	ControlSilent    Control = "silent" // a timeout, no route, a reset, a failed handshake
	ControlSame      Control = "same boot"
	ControlNewer     Control = "newer boot"
	ControlOlder     Control = "older boot"
	ControlOtherNode Control = "another node"
)

// Media is the result of a datagram to the media address.
type Media string

// Its values.
const (
	MediaRefused Media = "refused" // ICMP port unreachable
	MediaSilent  Media = "silent"
)

// Verdict is the conclusion from evidence.
type Verdict string

// Its values.
const (
	VerdictAlive   Verdict = "alive"
	VerdictSuspect Verdict = "suspect" // gossip decides
	VerdictDead    Verdict = "dead"
)

// Evidence was observed of one boot at one moment.
type Evidence struct {
	Stream  Stream
	Control Control
	Media   Media
}

// Verdict says dead for a newer boot. Otherwise all three must agree, because each alone has an innocent cause: a
// proxy, a firewall, a listener closed early.
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

// String is for logs.
func (e Evidence) String() string {
	return fmt.Sprintf("stream %s, control %s, media %s", e.Stream, e.Control, e.Media)
}

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
