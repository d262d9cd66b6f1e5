package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
	"github.com/holdfast-rtc/holdfast/lab/peer"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// large is a room of some who speak, and of viewers, on several media nodes.
type large struct {
	t        *testing.T
	cluster  *devcluster.Cluster
	speakers *people
	viewers  *people
}

// everybodySees waits until all have fresh sound and pictures of all speakers, counted from now.
func (l *large) everybodySees(when string) {
	l.t.Helper()
	since := time.Now()
	eventually(l.t, time.Minute, "everybody sees and hears the speakers "+when, func() error {
		for i, speaker := range l.speakers.peers {
			from := speaker.Stats().Peer
			for j, viewer := range append(l.viewers.peers, l.speakers.peers...) {
				at := viewer.Stats()
				switch {
				case from == "" || !at.Joined:
					return fmt.Errorf("speaker %d or person %d has not joined", i, j)
				case at.Peer == from:
					continue
				}
				for _, source := range []wire.Source{wire.SourceMicrophone, wire.SourceCamera} {
					if s := at.Streams[peer.StreamID{Peer: from, Source: source}]; !s.Last.After(since) {
						return fmt.Errorf("person %d at %s has no fresh %s of speaker %d (%d packets so far)", j, at.Node, source, i, s.Packets)
					}
				}
			}
		}
		return nil
	})
}

// at counts the viewers by the node that has their media.
func (l *large) at() map[string]int {
	nodes := map[string]int{}
	for _, p := range l.viewers.peers {
		nodes[string(p.Stats().Node)]++
	}
	return nodes
}

// spreads orders a further branch, and waits until the owner is linked to so many.
func (l *large) spreads(branches int) {
	l.t.Helper()
	if said, code := holdfast(l.t, l.cluster, "spread", l.speakers.room); code != 0 {
		l.t.Fatalf("spread: exit code %d: %s", code, said)
	}
	eventually(l.t, time.Minute, fmt.Sprintf("%d branches are linked", branches), func() error {
		said, _ := holdfast(l.t, l.cluster, "explain", l.speakers.room)
		if linked := strings.Count(said, ", and is sent "); linked != branches {
			return fmt.Errorf("%d are linked:\n%s", linked, said)
		}
		return nil
	})
}

// TestALargeRoom spreads a room over three media nodes, lets people come to all of them, kills a branch, and then the room's owner.
func TestALargeRoom(t *testing.T) {
	t.Parallel()
	takes(t, 2)
	c := startCluster(t, devcluster.Options{SFU: 3, Signaling: 2})
	l := &large{t: t, cluster: c, speakers: gather(t, c, "large", 2), viewers: &people{}}
	l.everybodySees("on one node")
	owner := heldOnce(t, c, "large")
	l.spreads(1)
	l.spreads(2)
	l.viewers = gatherAs(t, c, "large", 14, peer.Options{ListenOnly: true})
	l.everybodySees("on three nodes")
	if at := l.at(); len(at) < 2 || len(at) == 2 && at[owner.Node] > 0 {
		t.Fatalf("the viewers are at %v, and not at both branches", at)
	}
	spread := heldOnce(t, c, "large")
	if spread.Node != owner.Node || spread.Epoch != owner.Epoch || len(spread.Peers) != 16 {
		t.Errorf("the spread room is at %s, epoch %d, with %d people; it was at %s, epoch %d", spread.Node, spread.Epoch, len(spread.Peers), owner.Node, owner.Epoch)
	}
	for node := range l.at() {
		if node != owner.Node {
			kill(t, c, node)
			break
		}
	}
	l.everybodySees("after a branch died")
	if after := heldOnce(t, c, "large"); after.Node != owner.Node || after.Epoch != owner.Epoch {
		t.Errorf("a branch died, and the room moved to %s, epoch %d", after.Node, after.Epoch)
	}
	kill(t, c, owner.Node)
	l.everybodySees("after the owner died")
	eventually(t, time.Minute, "one node holds the room with everybody", func() error {
		held := holdings(t, c)["large"]
		if len(held) != 1 || len(held[0].Peers) != 16 || held[0].Node == owner.Node {
			return fmt.Errorf("held by %d nodes: %+v", len(held), held)
		}
		for i, p := range append(l.viewers.peers, l.speakers.peers...) {
			if at := p.Stats(); at.Epoch != held[0].Epoch {
				return fmt.Errorf("person %d at %s knows of epoch %d, and the room is at %d", i, at.Node, at.Epoch, held[0].Epoch)
			}
		}
		return nil
	})
}
