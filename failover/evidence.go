package failover

import (
	"fmt"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/control"
)

type streamState string

const (
	streamNever  streamState = "never open" // no heartbeat came
	streamBroken streamState = "broken"     // it broke after heartbeats
)

// controlAnswer is of a new connection.
type controlAnswer string

const (
	controlRefused   controlAnswer = "refused"
	controlSilent    controlAnswer = "silent" // timeout, no route, reset, failed handshake
	controlSame      controlAnswer = "same boot"
	controlNewer     controlAnswer = "newer boot"
	controlOlder     controlAnswer = "older boot"
	controlOtherNode controlAnswer = "another node"
)

type mediaAnswer string

const (
	mediaRefused mediaAnswer = "refused" // ICMP port unreachable
	mediaSilent  mediaAnswer = "silent"
)

type verdict string

const (
	verdictAlive   verdict = "alive"
	verdictSuspect verdict = "suspect" // gossip decides
	verdictDead    verdict = "dead"
)

// evidence of one boot at one moment.
type evidence struct {
	Stream  streamState
	Control controlAnswer
	Media   mediaAnswer
}

// A newer boot proves a death. Else all three must agree, because each alone has an innocent cause: a proxy, a firewall, a
// listener closed early.
func (e evidence) verdict() verdict {
	switch e.Control {
	case controlSame:
		return verdictAlive
	case controlNewer:
		return verdictDead
	case controlRefused, controlOtherNode:
		if e.Stream == streamBroken && e.Media == mediaRefused {
			return verdictDead
		}
		return verdictSuspect
	default:
		return verdictSuspect
	}
}

func (e evidence) String() string {
	return fmt.Sprintf("stream %s, control %s, media %s", e.Stream, e.Control, e.Media)
}

func controlOf(node cluster.Node, hello control.Hello) controlAnswer {
	switch {
	case hello.Node != node.ID:
		return controlOtherNode
	case hello.Boot == node.Boot:
		return controlSame
	case hello.Boot.Newer(node.Boot):
		return controlNewer
	default:
		return controlOlder
	}
}
