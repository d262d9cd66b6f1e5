package e2e

import (
	"context"
	"fmt"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
	"github.com/holdfast-rtc/holdfast/lab/peer"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// TestThirtyPublishersAndABrowser puts a browser with few slots into a room of thirty synthetic publishers. Its slots
// fill with different people whose packets arrive, an observer gets its picture, and the media node drops nothing.
func TestThirtyPublishersAndABrowser(t *testing.T) {
	needChromium(t)
	const publishers, slots = 30, 8
	c := startCluster(t, devcluster.Options{})
	room := roomOn(t, "sfu-2", "crowd")
	observer := crowd(t, c, room, publishers)
	browser := join(t, c.URL(), room, "Marie", url.Values{"video": {fmt.Sprint(slots)}, "audio": {"4"}})
	browser.knowsItself(t)

	eventually(t, time.Minute, "the browser's slots fill with different people whose packets arrive", func() error {
		return fullOfPeople(browser, slots)
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
	held := heldOnce(t, c, room)
	if err := allAttached([]heldRoom{held}, publishers+2); err != nil {
		t.Error(err)
	}
	if held.PacketsDropped != 0 || held.PacketsForwarded == 0 {
		t.Errorf("%d packets forwarded, %d dropped, want some and none", held.PacketsForwarded, held.PacketsDropped)
	}
	t.Logf("%d publishers: %d packets forwarded", publishers, held.PacketsForwarded)
}

// crowd lets n publishers with one slot of each kind join, and an observer
// with slots for everybody, which it returns.
func crowd(t *testing.T, c *devcluster.Cluster, room string, n int) *peer.Peer {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		wg.Wait()
	})
	start := func(name string, options peer.Options) *peer.Peer {
		token, err := c.Token(room, name)
		if err != nil {
			t.Fatal(err)
		}
		options.URL, options.Token, options.Room = c.URL(), token, room
		p, err := peer.New(options, quiet())
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			if err := p.Run(ctx); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
		return p
	}
	observer := start("observer", peer.Options{ListenOnly: true, AudioSlots: n + 1, VideoSlots: n + 1})
	for i := range n {
		start(fmt.Sprintf("publisher-%d", i), peer.Options{AudioSlots: 1, VideoSlots: 1})
	}
	return observer
}

func fullOfPeople(p *participant, slots int) error {
	s, err := p.stats()
	if err != nil {
		return err
	}
	people := make(map[string]bool)
	for mid, slot := range s.PerSlot {
		if slot.Source != "camera" || slot.Peer == "" {
			continue
		}
		if people[slot.Peer] {
			return fmt.Errorf("%s is in two slots", slot.Peer)
		}
		if slot.PacketsReceived < somePackets {
			return fmt.Errorf("slot %s (%s) has %g packets", mid, slot.Peer, slot.PacketsReceived)
		}
		people[slot.Peer] = true
	}
	if len(people) != slots {
		return fmt.Errorf("%d of %d slots show somebody", len(people), slots)
	}
	return nil
}
