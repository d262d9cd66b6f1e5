package failover

import (
	"fmt"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/control"
)

type streamState string

const (
	streamNever streamState = "never open"
	// The stream ended after it had carried heartbeats.
	streamBroken streamState = "broken"
)

// controlAnswer is what a new connection to the control address showed.
type controlAnswer string

const (
	controlRefused controlAnswer = "refused"
	// controlSilent also stands for a reset connection and for a failed handshake.
	controlSilent    controlAnswer = "silent"
	controlSame      controlAnswer = "same boot"
	controlNewer     controlAnswer = "newer boot"
	controlOlder     controlAnswer = "older boot"
	controlOtherNode controlAnswer = "another node"
)

type mediaAnswer string

const (
	// The host answered with ICMP port unreachable.
	mediaRefused mediaAnswer = "refused"
	mediaSilent  mediaAnswer = "silent"
)

type verdict string

const (
	verdictAlive verdict = "alive"
	// The probe proves nothing, so gossip and the heartbeats decide.
	verdictSuspect verdict = "suspect"
	verdictDead    verdict = "dead"
)

type evidence struct {
	Stream  streamState
	Control controlAnswer
	Media   mediaAnswer
}

// verdict evaluates one probe. A newer boot of the node proves the death of the older one. Otherwise the stream, the
// control port and the media port must agree, because each alone may be explained by a proxy, a firewall or a closed
// listener.
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
