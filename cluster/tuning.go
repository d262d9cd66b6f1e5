package cluster

import (
	"os"
	"time"

	"github.com/hashicorp/memberlist"
)

// A frozen process is dead after about a second: a probe 0.2 s, its failure 0.2 s, suspicion, and dissemination 0.1 s.
// Suspicion lasts suspicionMult x probeInterval for 3 to 10 members, twice that without a confirmation. See
// docs/CLUSTER.md.
const (
	// memberlist's defaults are 1 s and 4. At 200 ms each member sends five pings of 100 bytes a second. A process that is merely late
	// still has time to refute the suspicion.
	probeInterval = 200 * time.Millisecond
	suspicionMult = 3

	// memberlist's default of 6 means 3.6 s.
	suspicionMaxTimeoutMult = 2

	// probeTimeout is the time of the direct ping. The rest of the interval is for indirect ones.
	probeTimeout = 100 * time.Millisecond

	// memberlist's default is 200 ms.
	gossipInterval = 50 * time.Millisecond

	// pushPullInterval repairs lost gossip, at 200 bytes a member. memberlist's default is 30 s.
	pushPullInterval = 10 * time.Second

	// streamTimeout is short because a frozen seed delays other seeds, and the end of Run. memberlist's default is 10
	// s.
	streamTimeout = 2 * time.Second

	// retransmitMult is memberlist's default: each message is sent 4 x ceil(log10(n+1)) times.
	retransmitMult = 4
)

// tuning keeps four of memberlist's defaults: AwarenessMaxMultiplier 8 (a member that is late itself is slow to
// accuse others), IndirectChecks 3, TCP pings, and GossipToTheDeadTime 30 s (a frozen member learns of its death).
func tuning(haste float64) *memberlist.Config {
	c := memberlist.DefaultLANConfig()
	c.ProbeInterval, c.ProbeTimeout = probeInterval, probeTimeout
	if haste > 0 {
		c.ProbeInterval = time.Duration(float64(probeInterval) / haste)
		c.ProbeTimeout = time.Duration(float64(probeTimeout) / haste)
	}
	c.SuspicionMult = suspicionMult
	c.SuspicionMaxTimeoutMult = suspicionMaxTimeoutMult
	c.GossipInterval = gossipInterval
	c.PushPullInterval = pushPullInterval
	c.TCPTimeout = streamTimeout
	c.RetransmitMult = retransmitMult
	// LZW would allocate for each small packet.
	c.EnableCompression = false
	// With a configuration memberlist would ask DNS by TCP for records of type ANY.
	c.DNSConfigPath = os.DevNull
	return c
}
