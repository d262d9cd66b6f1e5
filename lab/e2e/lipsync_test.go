package e2e

import (
	"fmt"
	"math"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
)

const (
	soundLate = 300 * time.Millisecond
	// mostApart is what nobody notices: ITU-R BT.1359 finds 45 ms of early sound and 125 ms of late sound noticeable, and a browser steps
	// by up to 80 ms.
	mostApart = 90 * time.Millisecond
)

// playout is what a page plays of one person just now.
type playout struct {
	Sound, Picture           float64 // when it was captured, by the browser's estimate, in milliseconds; 0: it does not synchronise them
	SoundWaits, PictureWaits float64 // seconds in the jitter buffer, all in all
	Samples, Frames          float64 // that left it
}

func playing(t *testing.T, p *participant) playout {
	t.Helper()
	var now playout
	p.mustEval(t, `(async () => {
	  const newest = {}, at = (s) => s?.lastPacketReceivedTimestamp ?? 0;
	  for (const c of globalThis.__connections.filter((c) => c.signalingState !== 'closed'))
	    for (const s of (await c.getStats()).values())
	      if (s.type === 'inbound-rtp' && at(s) > at(newest[s.kind])) newest[s.kind] = s;
	  const { audio, video } = newest;
	  return {
	    Sound: audio?.estimatedPlayoutTimestamp ?? 0, Picture: video?.estimatedPlayoutTimestamp ?? 0,
	    SoundWaits: audio?.jitterBufferDelay ?? 0, PictureWaits: video?.jitterBufferDelay ?? 0,
	    Samples: audio?.jitterBufferEmittedCount ?? 0, Frames: video?.jitterBufferEmittedCount ?? 0,
	  };
	})()`, &now)
	return now
}

// apart looks for two seconds and returns by how much the sound is behind the picture, and how long both wait to be played.
func apart(t *testing.T, p *participant) (offset time.Duration, waits string, err error) {
	t.Helper()
	before := playing(t, p)
	var offsets []float64
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for range 10 {
		<-tick.C
		if now := playing(t, p); now.Sound != 0 && now.Picture != 0 {
			offsets = append(offsets, now.Picture-now.Sound)
		}
	}
	after := playing(t, p)
	wait := func(seconds, count float64) time.Duration {
		return time.Duration(1000*seconds/max(count, 1)) * time.Millisecond
	}
	waits = fmt.Sprintf("sound waits %v and pictures %v in the jitter buffer",
		wait(after.SoundWaits-before.SoundWaits, after.Samples-before.Samples), wait(after.PictureWaits-before.PictureWaits, after.Frames-before.Frames))
	if len(offsets) < 5 {
		return 0, waits, fmt.Errorf("the browser does not synchronise sound and picture: %s, and sound comes %v late", waits, soundLate)
	}
	slices.Sort(offsets)
	return time.Duration(math.Round(offsets[len(offsets)/2])) * time.Millisecond, waits, nil
}

func inStep(t *testing.T, p *participant, when string) {
	t.Helper()
	began := time.Now()
	eventually(t, time.Minute, "sound and picture are in step "+when, func() error {
		offset, waits, err := apart(t, p)
		if err == nil && offset.Abs() > mostApart {
			err = fmt.Errorf("the sound is %v behind the picture; %s", offset, waits)
		}
		if err != nil {
			return err
		}
		t.Logf("%s, within %v: the sound is %v behind the picture; %s", when, time.Since(began).Round(time.Second), offset, waits)
		return nil
	})
}

// lateSound has sound come to a viewer later than its picture: they are played in step, also after the node was killed.
func lateSound(t *testing.T, c *devcluster.Cluster, room string, viewer *participant) {
	held := heldOnce(t, c, room)
	path := startRelay(t, mediaOf(t, c, held.Node))
	// The node would take packets that overtake others by so much for lost, so the viewer reports nothing.
	path.delaySound(soundLate)
	viewer.visit(t, callAddress(c.URL(), room, "Viewer", url.Values{"via": {path.via()}, "feedback": {"none"}}), "globalThis.call")
	viewer.knowsItself(t)
	inStep(t, viewer, "at first")
	path.retarget(t, mediaOf(t, c, map[string]string{"sfu-1": "sfu-2", "sfu-2": "sfu-1"}[held.Node]))
	before := viewer.mustStats(t)
	kill(t, c, held.Node)
	viewer.awaitsMove(t, before, "restart")
	inStep(t, viewer, "after the kill")
}
