package e2e

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
)

// TestLayersRest: a browser stops the layers that nobody shows and begins again with the one that somebody asks for. Another node, which
// knows nothing of what rested, gets all of them first.
func TestLayersRest(t *testing.T) {
	t.Parallel()
	needChromium(t, 2)
	c := startCluster(t, devcluster.Options{SFU: 2, Signaling: 1})
	const room = "rests"
	people := joinAll(t, c.URL(), room, url.Values{"width": {"960"}, "height": {"540"}, "fps": {"15"}, "simulcast": {"1"}}, "Ada", "Bob")
	ada, bob := people[0], people[1]
	wantOnly(t, bob, ada.id, 160, 90)
	ada.encodes(t, "the smallest layer only", "q")
	wantOnly(t, bob, ada.id, 960, 540)
	ada.encodes(t, "the largest layer too", "f", "q")
	eventually(t, time.Minute, "Bob sees the largest layer", func() error {
		for _, slot := range bob.mustStats(t).PerSlot {
			if slot.Peer == ada.id && slot.Source == "camera" && slot.FrameWidth == 960 {
				return nil
			}
		}
		return fmt.Errorf("Ada sends %+v", ada.layers())
	})
	ada.mark(t)
	before := []callStats{ada.mustStats(t), bob.mustStats(t)}
	kill(t, c, heldOnce(t, c, room).Node)
	for i, p := range people {
		p.awaitsMove(t, before[i], "restart")
	}
	ada.encodes(t, "all layers at the other node", "f", "h", "q")
	ada.encodes(t, "what is shown at the other node", "f", "q")
	ada.unchanged(t)
}

// encodes waits until frames of exactly these layers of the camera are encoded for a while.
func (p *participant) encodes(t *testing.T, when string, rids ...string) {
	t.Helper()
	last, since := map[string]float64{}, map[string]time.Time{}
	eventually(t, time.Minute, p.name+" encodes "+when, func() error {
		s, err := p.stats()
		if err != nil {
			return err
		}
		now, running := time.Now(), map[string]bool{}
		for _, layer := range s.Outbound {
			if layer.RID == "" {
				continue
			}
			if layer.FramesEncoded != last[layer.RID] {
				last[layer.RID], since[layer.RID] = layer.FramesEncoded, now
			}
			running[layer.RID] = now.Sub(since[layer.RID]) < 2*time.Second
		}
		maps.DeleteFunc(running, func(_ string, runs bool) bool { return !runs })
		if got := slices.Sorted(maps.Keys(running)); !slices.Equal(got, rids) {
			return fmt.Errorf("it encodes %v of %+v, want %v", got, s.Outbound, rids)
		}
		return nil
	})
}
