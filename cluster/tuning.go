package cluster

import (
	"os"
	"time"

	"github.com/hashicorp/memberlist"
)

// Gossip is tuned to declare a frozen process (SIGSTOP, a hung host) dead within about a second.
// It may be wrong: a signaling node that still hears the node does not act on it (package
// failover), and memberlist takes it back when the accused denies it. With n members and no
// lost packets a detection takes:
//
//	first probe                0.16 s on average: each of the n-1 others probes it once in n-1 intervals
//	failed probe               probeInterval x (awareness + 1) of a prober that was itself late
//	suspicion                  suspicionMult x max(1, log10 n) x probeInterval with one
//	                           confirmation, suspicionMaxTimeoutMult times that without
//	dissemination              1 or 2 x gossipInterval
//
// That is 0.2 + 0.2 + 0.6 + 0.1 s. From three members on memberlist wants suspicionMult - 2 = 1
// confirmation: one other member must have failed to reach the suspect. docs/CLUSTER.md has
// the measured figures.
const (
	// probeInterval is short and suspicionMult high for it (defaults: 1 s and 4): a late process
	// can refute all through suspicion, but not during the probe. The cost is five pings of
	// about 100 bytes per second and member.
	probeInterval = 200 * time.Millisecond
	suspicionMult = 3

	// suspicionMaxTimeoutMult applies to an uncorroborated accusation. The default of 6 would
	// make it 3.6 s where members are too few or too slow to confirm.
	suspicionMaxTimeoutMult = 2

	// probeTimeout bounds the direct UDP ping. The rest of probeInterval is for the indirect
	// probes and TCP.
	probeTimeout = 100 * time.Millisecond

	// gossipInterval is how long news waits for the next packet (default 200 ms).
	gossipInterval = 50 * time.Millisecond

	// pushPullInterval repairs what gossip lost, such as loads and leave messages (default
	// 30 s). A state has about 200 bytes per member.
	pushPullInterval = 10 * time.Second

	// streamTimeout bounds one TCP exchange (default 10 s). Run waits for the current one when
	// it ends, and a frozen seed delays the other seeds.
	streamTimeout = 2 * time.Second

	// retransmitMult is memberlist's default, and holds for our own messages too: each member
	// sends a new message 4 x ceil(log10(n+1)) times.
	retransmitMult = 4
)

// tuning is memberlist's LAN configuration with our values; haste is Config.Haste. It keeps
// AwarenessMaxMultiplier 8 (a late member probes up to 8 times slower, so a busy machine is slow
// to accuse), IndirectChecks 3 and TCP pings (all must fail), and GossipToTheDeadTime 30 s (so
// that a frozen member learns of its death when it wakes, and refutes it).
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
	c.EnableCompression = false  // Packets are below 1400 bytes; LZW costs CPU and allocations on each.
	c.DNSConfigPath = os.DevNull // Otherwise memberlist first sends a TCP query of type ANY for each name with a dot.
	return c
}
