//go:build long && linux

package e2e

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
	"github.com/holdfast-rtc/holdfast/ring"
)

// TestSoundIsInStepAfterAMute: half a second after a microphone is back, it is played in step with the picture, however long it was muted.
func TestSoundIsInStepAfterAMute(t *testing.T) {
	needFirefox(t, 2)
	c := startCluster(t, devcluster.Options{SFU: 1, Signaling: 1, MediaHost: ownAddress(t)})
	viewer := &participant{page: openPage(t, "Viewer", c.URL()+"?name=Viewer")}
	t.Run("Chromium", func(t *testing.T) {
		afterMutes(t, c, &participant{page: openPage(t, "Clara", c.URL()+"?name=Clara")}, viewer)
	})
	t.Run("Firefox", func(t *testing.T) {
		afterMutes(t, c, &participant{page: openFirefox(t, "Felix", c.URL()+"?name=Felix")}, viewer)
	})
}

func afterMutes(t *testing.T, c *devcluster.Cluster, talker, viewer *participant) {
	room := roomOn(t, ring.NodeID("sfu-1"), t.Name())
	people := []*participant{talker, viewer}
	for _, p := range people {
		p.id = ""
		p.visit(t, callAddress(c.URL(), room, p.name, nil), "globalThis.call")
	}
	for _, p := range people {
		p.knowsItself(t)
	}
	allDecodeAll(t, time.Minute, people)
	inStep(t, viewer, "at first")
	for _, mute := range []time.Duration{3 * time.Second, 6 * time.Second, 12 * time.Second} {
		talker.mustEval(t, `(async () => {
		  const senders = globalThis.__connections.filter((c) => c.signalingState !== 'closed').flatMap((c) => c.getSenders());
		  globalThis.__microphone = senders.find((s) => s.track?.kind === 'audio').track;
		  await call.replaceTrack('microphone', null);
		})()`, nil)
		<-time.After(mute)
		before := viewer.mustStats(t).flowFrom(talker.id)
		talker.mustEval(t, `call.replaceTrack('microphone', globalThis.__microphone)`, nil)
		eventually(t, 30*time.Second, "sound is back", func() error {
			if now := viewer.mustStats(t).flowFrom(talker.id); now.packets == before.packets {
				return fmt.Errorf("%g packets", now.packets)
			}
			return nil
		})
		<-time.After(500 * time.Millisecond)
		var offsets []float64
		for range 5 {
			if now := playing(t, viewer); now.Sound != 0 && now.Picture != 0 {
				offsets = append(offsets, now.Picture-now.Sound)
			}
			<-time.After(100 * time.Millisecond)
		}
		if len(offsets) == 0 {
			t.Errorf("after a mute of %v the browser does not synchronise sound and picture", mute)
			continue
		}
		slices.Sort(offsets)
		offset := time.Duration(math.Round(offsets[len(offsets)/2])) * time.Millisecond
		t.Logf("after a mute of %v the sound is %v behind the picture (%.0f)", mute, offset, offsets)
		if offset.Abs() > mostApart {
			t.Errorf("after a mute of %v the sound is %v behind the picture, want %v at most", mute, offset, mostApart)
		}
	}
}
