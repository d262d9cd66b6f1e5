package sfu

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-rtc/holdfast/control"
)

// TestASilentNodeIsNoticed within two beats more than it may be silent, if it is one that sends beats.
func TestASilentNodeIsNoticed(t *testing.T) {
	for name, beats := range map[string]bool{"a node that sends beats": true, "an older node": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := heartbeat{beats: new(atomic.Bool)}
				var sent, silences atomic.Int64
				go h.run(t.Context(), func() { sent.Add(1) }, func() { silences.Add(1) })
				after := func(d time.Duration) { // the bubble's clock
					<-time.After(d)
					synctest.Wait()
				}
				for range 20 {
					after(linkSilentBeats * linkBeat / 2)
					h.note(&control.LinkMessage{Message: &control.LinkMessage_Left{}})
					if beats {
						h.note(&control.LinkMessage{})
					}
				}
				if silences.Load() > 0 || sent.Load() < 20 {
					t.Fatalf("%d silences, %d beats", silences.Load(), sent.Load())
				}
				after((linkSilentBeats + 2) * linkBeat)
				if got := silences.Load() == 1; got != beats {
					t.Errorf("noticed %t, want %t", got, beats)
				}
			})
		})
	}
}
