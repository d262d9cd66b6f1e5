package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
)

// attack is one row of the table of what anybody may send.
type attack struct {
	name string
	do   func(ctx context.Context, a *attacker) error
}

// attacks lists them; docs/PROTOCOL.md has the limits that they meet. lab/attack has those of crowds at a node.
func attacks() []attack {
	return []attack{
		{"bad tokens and rooms", badEntries},
		{"messages that are none", badMessages},
		{"offers that are none", badOffers},
		{"a message of 1 MB", tooLong},
		{"20,000 messages at once", messageFlood},
		{"frames that never become messages", endlessFrames},
		{"clients that never read", neverRead},
		{"sockets behind the balancer that never say join", idleSockets},
		{"nonsense on the REST API", badRequests},
		{"noise on the media port", mediaNoise},
		{"checks from thousands of ports", checksFromEverywhere},
		{"noise on the control port", controlNoise},
		{"noise on the gossip ports", gossipNoise},
	}
}

// rounds: the first makes what is kept, such as pools and connections between nodes. What the second adds has leaked.
const rounds = 2

// keptPlace shortens the grace time: a round ends when the last abandoned session is given up.
const keptPlace = 6 * time.Second

// TestNothingThatAnybodySendsDisturbsACall runs every attack against the nodes of a call of two. The call gets no new
// offer and loses no packet at the node, others can join all the time, and in the end memory, goroutines and sockets are
// those of the first round.
func TestNothingThatAnybodySendsDisturbsACall(t *testing.T) {
	t.Parallel() // most of it is waiting
	c := startCluster(t, devcluster.Options{
		SFU: 1, Signaling: 1, NodeEnv: map[string][]string{"sfu-1": {"HOLDFAST_GRACE=" + keptPlace.String()}},
	})
	call := gather(t, c, "healthy", 2)
	call.everybodyReceives(t, 30*time.Second)
	a := newAttacker(t, c, call.room, "signaling-1", "sfu-1", portFront)
	before := call.unharmed(t, c)
	idle := processOf(t, c, "signaling-1")
	for range 10 {
		newcomer(t, c, call.room)
	}
	eventually(t, time.Minute, "the newcomers have left", func() error { return stormOver(t, c, call, idle) })
	logFootprints(t, "before", footprints(t, c))
	var first map[string]footprint
	for round := range rounds {
		for _, row := range attacks() {
			t.Run(fmt.Sprintf("round %d: %s", round+1, row.name), func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), attackLimit)
				defer cancel()
				if err := row.do(ctx, a); err != nil {
					t.Error(err)
				}
				newcomer(t, c, call.room)
				call.everybodyReceives(t, time.Minute)
				if after := call.unharmed(t, c); after != before {
					t.Errorf("the call was %+v and is %+v", before, after)
				}
			})
		}
		a.release()
		// The places of those who left without a word are kept for the grace time.
		eventually(t, time.Minute, "the storm is over", func() error { return stormOver(t, c, call, idle) })
		if round == 0 {
			first = footprints(t, c)
			logFootprints(t, "round 1", first)
			continue
		}
		nothingLeft(t, c, fmt.Sprint("round ", round+1), first)
	}
	for i, p := range call.peers {
		for id, s := range p.Stats().Streams {
			if s.LongestGap > maxUndisturbedGap {
				t.Errorf("person-%d: %v without a packet of %v", i, s.LongestGap, id)
			}
		}
	}
}

// health is what an attack must not change of a call.
type health struct {
	Offers, Dropped               uint64
	Connections, Restarts, Losses int
}

// unharmed asks the SFU and the people themselves.
func (g *people) unharmed(t *testing.T, c *devcluster.Cluster) health {
	t.Helper()
	held := heldOnce(t, c, g.room)
	h := health{Dropped: held.PacketsDropped}
	for _, p := range g.peers {
		s := p.Stats()
		h.Connections, h.Restarts, h.Losses = h.Connections+s.Connections, h.Restarts+len(s.Restarts), h.Losses+s.SocketsLost
		for _, entry := range held.Peers {
			if entry.Peer == string(s.Peer) {
				h.Offers += entry.Offers
			}
		}
	}
	return h
}

// newcomer joins through the front, as anybody would, and leaves.
func newcomer(t *testing.T, c *devcluster.Cluster, room string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	began := time.Now()
	socket, _, err := joinAs(ctx, c, room, fmt.Sprintf("newcomer-%d", began.UnixNano()))
	if err != nil {
		t.Errorf("nobody can join: %v", err)
		return
	}
	t.Logf("a newcomer joined in %v", time.Since(began).Round(time.Millisecond))
	goodbye(socket)
}
