package e2e

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/events"
	"github.com/holdfast-rtc/holdfast/lab/browser"
	"github.com/holdfast-rtc/holdfast/lab/devcluster"
	"github.com/holdfast-rtc/holdfast/lab/peer"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// maxUndisturbedGap is above what a loaded machine loses, and below the timeouts of ICE. That nobody connected anew is seen by the
// connections.
const maxUndisturbedGap = 5 * time.Second

// TestCallSurvivesTheKillOfItsNode is the idea of the project: three people in a room and two in another, on different
// media nodes. Both signaling nodes are killed in turn, and nobody's media notices. Then the first room's node is killed:
// its call goes on while the other room notices nothing. In the end thirty people come to the other room.
func TestCallSurvivesTheKillOfItsNode(t *testing.T) {
	t.Parallel()
	needChromium(t, 5)
	c := startCluster(t, devcluster.Options{})
	roomA, roomB := roomOn(t, "sfu-1", "alpha"), roomOn(t, "sfu-2", "beta")
	fewFrames := url.Values{"fps": {"10"}}
	inA := joinAll(t, c.URL(), roomA, fewFrames, "Ada", "Alan")
	// Annie's browser rejects the answer of a restart: her library takes a new connection.
	inA = append(inA, join(t, c.URL(), roomA, "Annie", url.Values{"fps": {"10"}, "rejectAnswers": {"1"}}))
	inA[2].knowsItself(t)
	allDecodeAll(t, time.Minute, inA)
	// Blaise's browser is the whole Chromium, the others are headless shells.
	inB := joinAll(t, c.URL(), roomB, fewFrames, "Barbara")
	inB = append(inB, &participant{page: openPageIn(t, browser.Whole(), "Blaise", callAddress(c.URL(), roomB, "Blaise", fewFrames))})
	inB[1].knowsItself(t)
	allDecodeAll(t, time.Minute, inB)
	// Where they are placed, unless the machine stood still and a node was taken for dead meanwhile.
	if a, b := heldOnce(t, c, roomA), heldOnce(t, c, roomB); a.Node == b.Node {
		t.Fatalf("both rooms are on %s", a.Node)
	}
	for _, p := range slices.Concat(inA, inB) {
		p.mark(t)
	}
	t.Run("signaling nodes", func(t *testing.T) { withoutSignaling(t, c, roomB, inB) })
	t.Run("its media node", func(t *testing.T) { withoutItsNode(t, c, roomA, roomB, inA, inB) })
	for _, p := range append(inA, inB[1]) { // The machine is to have time for the crowd.
		p.visit(t, "about:blank", "true")
	}
	t.Run("a crowd comes", func(t *testing.T) { crowdComes(t, c, roomB, inB[0]) })
}

// withoutSignaling kills both signaling nodes in turn: every socket breaks at least once, and media never stops.
func withoutSignaling(t *testing.T, c *devcluster.Cluster, room string, people []*participant) {
	before := heldOnce(t, c, room)
	for _, p := range people {
		p.watchFrames(t)
	}
	for _, name := range []string{"signaling-1", "signaling-2"} {
		kill(t, c, name)
		eventually(t, time.Minute, "all are attached again after the kill of "+name, func() error {
			held, err := askHoldings(t.Context(), c)
			if err != nil {
				return err
			}
			return allAttached(held[room], len(people))
		})
		restart(t, c, name)
	}
	// The sessions work again: what one says reaches the other.
	people[0].mustEval(t, "window.call.setMuted('microphone', true)", nil)
	people[1].sees(t, "the mute", fmt.Sprintf("window.call.roster.find((p) => p.peer === %q)?.audioMuted", people[0].id))
	people[0].mustEval(t, "window.call.setMuted('microphone', false)", nil)
	for _, p := range people {
		p.unchanged(t)
		if gap := p.longestFrameGap(t); gap > maxUndisturbedGap {
			t.Errorf("%s: %v without a new frame while signaling nodes died", p.name, gap)
		}
	}
	sameRoom(t, before, heldOnce(t, c, room))
}

func withoutItsNode(t *testing.T, c *devcluster.Cluster, roomA, roomB string, inA, inB []*participant) {
	beforeA, beforeB := heldOnce(t, c, roomA), heldOnce(t, c, roomB)
	stats := make([]callStats, len(inA))
	for i, p := range inA {
		stats[i] = p.mustStats(t)
	}
	kill(t, c, beforeA.Node)
	for i, p := range inA {
		if i == 2 {
			if after := p.awaitsMove(t, stats[i], "new-connection"); after.PcID == stats[i].PcID {
				t.Errorf("%s still has connection %d", p.name, after.PcID)
			}
		} else if after := p.awaitsMove(t, stats[i], "restart"); after.PcID != stats[i].PcID {
			t.Errorf("%s: connection %d became %d", p.name, stats[i].PcID, after.PcID)
		}
	}
	allDecodeAll(t, 30*time.Second, inA)
	inA[0].unchanged(t)
	inA[1].unchanged(t)
	inA[2].sameElements(t)
	if after := heldOnce(t, c, roomA); after.Epoch != beforeA.Epoch+1 {
		t.Errorf("room %s went from epoch %d to %d, want exactly one re-homing", roomA, beforeA.Epoch, after.Epoch)
	}
	undisturbed(t, c, beforeB, inB)
	pinsNameOnlyLiveNodes(t, c)
	remembered(t, c, beforeA, len(inA))
}

// remembered waits until the cluster's events tell of the death of a room's node, of the room's one move, and of everybody's return.
func remembered(t *testing.T, c *devcluster.Cluster, before heldRoom, people int) {
	t.Helper()
	eventually(t, time.Minute, "the events tell of it", func() error {
		var ofNode, ofRoom struct{ Events []events.Event }
		if err := c.Admin(t.Context(), "events?since=1h&node="+before.Node, &ofNode); err != nil {
			return err
		}
		moves, deaths, back := 0, 0, 0
		for _, e := range ofNode.Events {
			switch {
			case e.Kind == events.RoomRehomed && string(e.Room) == before.Room:
				moves++
			case e.Kind == events.NodeDown && e.Cause != "":
				deaths++
			}
		}
		if err := c.Admin(t.Context(), "events?since=1h&kind=room_back&room="+url.QueryEscape(before.Room), &ofRoom); err != nil {
			return err
		}
		for _, e := range ofRoom.Events {
			back += e.Back
		}
		if moves != 1 || deaths != 1 || back != people {
			return fmt.Errorf("%d moves, %d deaths, %d of %d back", moves, deaths, back, people)
		}
		return nil
	})
}

// crowdComes lets thirty publishers into a room with a browser that has few slots. They fill with different people whose
// packets arrive, an observer gets its picture, and the media node drops nothing.
func crowdComes(t *testing.T, c *devcluster.Cluster, room string, browser *participant) {
	const publishers, slots = 30, 4
	before := heldOnce(t, c, room)
	observer := gatherAs(t, c, room, 1, peer.Options{ListenOnly: true, AudioSlots: publishers + 2, VideoSlots: publishers + 2}).peers[0]
	gatherAs(t, c, room, publishers, peer.Options{AudioSlots: 1, VideoSlots: 1})
	eventually(t, time.Minute, "the browser's slots fill with different people whose packets arrive", func() error {
		s, err := browser.stats()
		if err != nil {
			return err
		}
		people := make(map[string]bool)
		for mid, slot := range s.PerSlot {
			switch {
			case slot.Source != "camera" || slot.Peer == "":
				continue
			case people[slot.Peer]:
				return fmt.Errorf("%s is in two slots", slot.Peer)
			case slot.PacketsReceived < somePackets:
				// Whether the observer, who has a slot for everybody, gets that picture tells whose fault it is.
				seen := observer.Stats().Streams[peer.StreamID{Peer: wire.PeerID(slot.Peer), Source: wire.SourceCamera}]
				return fmt.Errorf("slot %s (%s, paused %t) has %g packets; the observer got %d", mid, slot.Peer, slot.Paused, slot.PacketsReceived, seen.Packets)
			}
			people[slot.Peer] = true
		}
		if len(people) != slots {
			return fmt.Errorf("%d of %d slots show somebody", len(people), slots)
		}
		return nil
	})
	eventually(t, time.Minute, "the browser's picture and sound reach the observer", func() error {
		at := observer.Stats()
		for _, source := range []wire.Source{wire.SourceCamera, wire.SourceMicrophone} {
			if s := at.Streams[peer.StreamID{Peer: wire.PeerID(browser.id), Source: source}]; s.Packets < somePackets {
				return fmt.Errorf("%d packets of its %s", s.Packets, source)
			}
		}
		return nil
	})
	eventually(t, time.Minute, "all are attached", func() error {
		rooms, err := askHoldings(t.Context(), c)
		if err != nil {
			return err
		}
		return allAttached(rooms[room], publishers+2)
	})
	if held := heldOnce(t, c, room); held.Lost() != before.Lost() {
		t.Errorf("%d packets dropped, %d before", held.Lost(), before.Lost())
	}
}

// awaitsMove waits until a page has reported exactly one more migration, in that way.
func (p *participant) awaitsMove(t *testing.T, before callStats, how string) (after callStats) {
	t.Helper()
	eventually(t, time.Minute, p.name+" is moved", func() (err error) {
		if after, err = p.stats(); err != nil {
			return err
		}
		migrations := after.Migrations[len(before.Migrations):]
		if after.Epoch <= before.Epoch || len(migrations) != 1 || migrations[0].How != how {
			return fmt.Errorf("at epoch %d, before %d, migrations %+v, want one by %s", after.Epoch, before.Epoch, migrations, how)
		}
		return nil
	})
	m := after.Migrations[len(after.Migrations)-1]
	t.Logf("gap of %s: %.0f ms (%s, attempt %d)", p.name, m.GapMs, m.How, m.Attempt)
	return after
}

// undisturbed checks that a room on a healthy node noticed nothing: same node and epoch, no new offer, no packet
// dropped, same connections, media flowing.
func undisturbed(t *testing.T, c *devcluster.Cluster, before heldRoom, people []*participant) {
	t.Helper()
	for _, p := range people {
		p.unchanged(t)
		if s := p.mustStats(t); s.Epoch != before.Epoch {
			t.Errorf("%s: went from epoch %d to %d, %+v", p.name, before.Epoch, s.Epoch, s.Migrations)
		}
	}
	allDecodeAll(t, 30*time.Second, people)
	sameRoom(t, before, heldOnce(t, c, before.Room))
}

// watchFrames notes, in the page, the longest time between two decoded frames of any picture of somebody else.
func (p *participant) watchFrames(t *testing.T) {
	t.Helper()
	var watched int
	p.mustEval(t, `(() => {
	  globalThis.__gap = 0;
	  const cameras = call.roster.filter(({ peer }) => peer !== call.peer).map(({ peer }) => call.stream(peer, 'camera'));
	  const others = [...document.querySelectorAll('video')].filter((v) => cameras.includes(v.srcObject) && v.videoWidth > 0);
	  for (const video of others) {
	    let last = performance.now();
	    const each = () => { const now = performance.now(); globalThis.__gap = Math.max(globalThis.__gap, now - last); last = now; video.requestVideoFrameCallback(each); };
	    video.requestVideoFrameCallback(each);
	  }
	  return others.length;
	})()`, &watched)
	if watched != 1 {
		t.Fatalf("%s: %d pictures of others to watch, want 1", p.name, watched)
	}
}

func (p *participant) longestFrameGap(t *testing.T) time.Duration {
	t.Helper()
	var ms float64
	p.mustEval(t, "globalThis.__gap", &ms)
	return time.Duration(ms * float64(time.Millisecond))
}

func logged(t *testing.T, c *devcluster.Cluster, node, words string) error {
	t.Helper()
	text, err := c.Logs(t.Context(), node)
	if err == nil && !strings.Contains(text, words) {
		err = fmt.Errorf("%s has not logged %q", node, words)
	}
	return err
}
