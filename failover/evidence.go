package failover

import (
	"fmt"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/control"
)

type streamState string

const (
	streamNever  streamState = "never open"
	streamBroken streamState = "broken" // after heartbeats
)

// controlAnswer is of a new connection.
type controlAnswer string

const (
	controlRefused   controlAnswer = "refused"
	controlSilent    controlAnswer = "silent" // or reset, or a failed handshake
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

type evidence struct {
	Stream  streamState
	Control controlAnswer
	Media   mediaAnswer
}

// A newer boot proves a death. Else all three must agree: each alone may come of a proxy, a firewall or a closed listener.
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
