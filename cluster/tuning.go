package cluster

import (
	"log"
	"os"
	"time"

	"github.com/hashicorp/memberlist"
)

// Gossip is one of two witnesses of a frozen process (SIGSTOP, a hung host). It is tuned to
// speak within about a second, and may be wrong: a signaling node that still hears an SFU node's beats does not
// act on it (package failover), and memberlist takes it back when the accused denies it. With n
// members and no lost packets it takes
//
//	wait until somebody probes it   0.16 s on average, 0.4 s at the 95th percentile of five
//	                                members: each of the n-1 others probes it once in n-1 intervals
//	the probe fails                 1 x probeInterval, times (awareness + 1) on a prober that
//	                                has itself been late
//	suspicion                       suspicionMult x max(1, log10 n) x probeInterval with one
//	                                confirmation, suspicionMaxTimeoutMult times that without
//	the word gets round             1 or 2 x gossipInterval
//
// that is about 0.2 + 0.2 + 0.6 + 0.1 s. memberlist wants suspicionMult - 2 = 1 confirmation where there are
// three members or more: a second one must have failed to reach the suspect, as one of four others has within
// 0.3 s on average. For n up to 10 the factor is 1, for 100 it is 2, and a second is 1.6 s there.
// Measured figures are in docs/CLUSTER.md.
const (
	// probeInterval is short and suspicionMult high for it (defaults: 1 s and 4), because a process that
	// was only late can refute all through suspicion, and not during the probe. A suspect loses 0.8 s to a
	// busy machine before it is given up, 1.4 s where nobody confirms. With suspicionMult 5, as it was before
	// signaling nodes had a word in it, three confirmations were wanted and 1.2 s tolerated, and detection
	// took 1.3 to 2.1 s. The cost is five pings a second and member, of about 100 bytes.
	probeInterval = 200 * time.Millisecond
	suspicionMult = 3

	// suspicionMaxTimeoutMult is what an uncorroborated accusation takes. The default of 6 would make
	// it 3.6 s whenever members are too few, or themselves too slow, to confirm within a
	// second. With 2 a member that is cut off from all others still waits 1.2 s before it believes so.
	suspicionMaxTimeoutMult = 2

	// probeTimeout is how long the direct UDP ping may take before three others are asked
	// and TCP is tried, all within the same probeInterval. Half of it leaves the detours 100 ms. A
	// round trip longer than that is no network to run one cluster over.
	probeTimeout = 100 * time.Millisecond

	// gossipInterval is how long news waits for the next packet (default 200 ms). A tick with nothing
	// to say costs a lock and a queue look-up, 20 times a second.
	gossipInterval = 50 * time.Millisecond

	// pushPullInterval repairs what gossip lost: load reports, leave messages (default 30 s). A
	// state is about 200 bytes a member.
	pushPullInterval = 10 * time.Second

	// streamTimeout bounds one TCP exchange (default 10 s), since Run waits for the one under way when it
	// ends, and a frozen seed must not hold up the other seeds for longer.
	streamTimeout = 2 * time.Second

	// retransmitMult is memberlist's default, for our own messages too: each is sent 4 x ceil(log10(n+1))
	// times by every member that hears it for the first time.
	retransmitMult = 4
)

// memberlistConfig is memberlist's LAN configuration with our knobs. Kept on purpose:
// AwarenessMaxMultiplier 8 (a member that is itself late probes up to 8 times slower, so a busy
// machine is slow to accuse), IndirectChecks 3 and TCP pings (three members and
// TCP must fail too), GossipToTheDeadTime 30 s (a dead member is told so for 30 s, so that one
// that was only frozen refutes as soon as it wakes).
func memberlistConfig(name string, key []byte, logger *log.Logger) *memberlist.Config {
	c := memberlist.DefaultLANConfig()
	c.Name = name
	c.SecretKey = key // GossipVerifyIncoming and Outgoing are on by default: nothing in clear is accepted or sent.
	c.ProbeInterval = probeInterval
	c.ProbeTimeout = probeTimeout
	c.SuspicionMult = suspicionMult
	c.SuspicionMaxTimeoutMult = suspicionMaxTimeoutMult
	c.GossipInterval = gossipInterval
	c.PushPullInterval = pushPullInterval
	c.TCPTimeout = streamTimeout
	c.RetransmitMult = retransmitMult
	c.EnableCompression = false  // Packets are below 1400 bytes; LZW would cost CPU and allocations on each.
	c.DNSConfigPath = os.DevNull // Otherwise names with a dot are asked for by a TCP query of type ANY first.
	c.Logger = logger
	return c
}

// hurry divides the times of detection, for tests that must see what detection does when it is too tight.
func hurry(c *memberlist.Config, haste float64) {
	if haste == 0 {
		return
	}
	faster := func(d time.Duration) time.Duration { return time.Duration(float64(d) / haste) }
	c.ProbeInterval, c.ProbeTimeout = faster(c.ProbeInterval), faster(c.ProbeTimeout)
}
