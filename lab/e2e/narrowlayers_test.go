//go:build long && linux

package e2e

import (
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
)

// rate is what a viewer gets of a camera a second, on the wire, and of sound.
type rate struct{ width, frames, bits, sound float64 }

// TestFramesGoBeforePixels has a camera in one stream of three spatial and three temporal layers. A path that carries four fifths
// of it shows pictures of the same size, and fewer of them; one that carries a third shows smaller ones; a wide one shows all again.
func TestFramesGoBeforePixels(t *testing.T) { //nolint:paralleltest // a browser that encodes three sizes of VP9
	needChromium(t, atOnce)
	c := startCluster(t, devcluster.Options{SFU: 1, Signaling: 1})
	const room = "layers"
	sender := join(t, c.URL(), room, "Sender", url.Values{"width": {"640"}, "height": {"360"}, "fps": {"20"}, "codec": {"VP9"}, "scalability": {"L3T3_KEY"}})
	sender.knowsItself(t)
	path := startRelay(t, mediaOf(t, c, heldOnce(t, c, room).Node))
	viewer := join(t, c.URL(), room, "Viewer", url.Values{"via": {path.via()}})
	viewer.knowsItself(t)
	wantOnly(t, viewer, sender.id, 640, 360)

	got := func() (r rate) {
		t.Helper()
		look := func() (r rate) {
			const headers = 60 // of IP, UDP, RTP with its extensions and SRTP
			for _, slot := range viewer.mustStats(t).PerSlot {
				bits := 8 * (slot.BytesReceived + headers*slot.PacketsReceived)
				switch {
				case slot.Peer != sender.id:
				case slot.Source == "camera":
					r.width, r.frames, r.bits = slot.FrameWidth, slot.FramesDecoded, bits
				default:
					r.sound += bits
				}
			}
			return r
		}
		before, at := look(), time.Now()
		watchFor(t, 5*time.Second, viewer, viewer, sender.id, nil)
		after, took := look(), time.Since(at).Seconds()
		return rate{after.width, (after.frames - before.frames) / took, (after.bits - before.bits) / took, (after.sound - before.sound) / took}
	}
	var full rate
	eventually(t, 2*time.Minute, "the viewer is shown all", func() error {
		if full = got(); full.width != 640 || full.frames < 15 {
			return fmt.Errorf("%+v", full)
		}
		return nil
	})
	for _, step := range []struct {
		name         string
		share        float64 // of the full rate; 0: no limit
		width        float64
		least, under float64 // frames a second, of the full ones
	}{
		{"fewer pictures", 0.8, 640, 0.2, 0.8},
		{"smaller ones", 0.35, 320, 0.2, 1.2},
		{"all again", 0, 640, 0.8, 1.2},
	} {
		limit := 0.0
		if step.share > 0 {
			limit = full.sound + step.share*full.bits
		}
		path.limit(limit)
		began := time.Now()
		eventually(t, 2*time.Minute, step.name, func() error {
			r := got()
			if r.width != step.width || r.frames < step.least*full.frames || r.frames > step.under*full.frames {
				return fmt.Errorf("%+v of %+v", r, full)
			}
			t.Logf("%s after %v: %.0f wide, %.1f frames/s of %.1f, %.0f kbit/s of %.0f", step.name, time.Since(began).Round(time.Second),
				r.width, r.frames, full.frames, r.bits/1000, full.bits/1000)
			return nil
		})
	}
}
