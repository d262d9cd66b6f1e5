package e2e

import (
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
)

// TestScalableStream has a camera that is one stream in three spatial layers, encrypted end to end: two people are shown different sizes
// of it, also after the node is killed.
// It runs beside no other test: three browsers that encode and decode VP9 at 960x540 take what there is.
func TestScalableStream(t *testing.T) {
	needChromium(t, 3)
	c := startCluster(t, devcluster.Options{SFU: 2, Signaling: 1})
	room, key := roomOn(t, "sfu-1", "scalable"), newKey()
	sender := join(t, c.URL(), room, "Sender", withKey(key, url.Values{
		"width": {"960"}, "height": {"540"}, "fps": {"15"}, "codec": {"VP9"}, "scalability": {"L3T3_KEY"},
	}))
	large := join(t, c.URL(), room, "Large", withKey(key, nil))
	small := join(t, c.URL(), room, "Small", withKey(key, nil))
	people := []*participant{sender, large, small}
	for _, p := range people {
		p.knowsItself(t)
	}
	wantOnly(t, large, sender.id, 960, 540)
	wantOnly(t, small, sender.id, 240, 135)
	sizes := func() {
		t.Helper()
		for p, width := range map[*participant]float64{large: 960, small: 240} {
			since := watch(t, p, sender.id)
			eventually(t, time.Minute, fmt.Sprintf("%s decodes pictures %g wide", p.name, width), func() error {
				if w := watch(t, p, sender.id); w.width != width || w.frames < since.frames+someFrames {
					return fmt.Errorf("%+v, before %+v", w, since)
				}
				return nil
			})
		}
	}
	sizes()
	for _, p := range people {
		p.mark(t)
	}
	before := large.mustStats(t)
	kill(t, c, "sfu-1")
	large.awaitsMove(t, before, "restart")
	sizes()
	for _, p := range people {
		p.sameConnections(t)
	}
}
