package e2e

import (
	"fmt"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
)

type watched struct {
	at     time.Time
	frames float64
	width  float64
	sound  float64 // packets
}

func watch(t *testing.T, p *participant, peer string) watched {
	t.Helper()
	w := watched{at: time.Now()}
	for _, slot := range p.mustStats(t).PerSlot {
		if slot.Peer != peer {
			continue
		}
		switch slot.Source {
		case "camera":
			w.frames, w.width = slot.FramesDecoded, slot.FrameWidth
		case "microphone":
			w.sound = slot.PacketsReceived
		}
	}
	return w
}

// watchFor looks several times a second, until enough holds or the limit is reached. The control is another page at the
// same time: it shows pauses of the machine.
func watchFor(t *testing.T, limit time.Duration, p, other *participant, peer string, enough func(watched) bool) (seen, control []watched) {
	t.Helper()
	tick := time.NewTicker(150 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(limit); time.Now().Before(end); <-tick.C {
		w := watch(t, p, peer)
		seen, control = append(seen, w), append(control, watch(t, other, peer))
		if enough != nil && enough(w) {
			break
		}
	}
	return seen, control
}

// longestStill is the longest time in which no frame was decoded, and in which no
// sound came, to the precision of the looks.
func longestStill(seen []watched) (picture, sound time.Duration) {
	if len(seen) == 0 {
		return 0, 0
	}
	frameAt, soundAt := seen[0], seen[0]
	for _, w := range seen[1:] {
		picture, sound = max(picture, w.at.Sub(frameAt.at)), max(sound, w.at.Sub(soundAt.at))
		if w.frames != frameAt.frames {
			frameAt = w
		}
		if w.sound != soundAt.sound {
			soundAt = w
		}
	}
	return picture, sound
}

// longestOfMachine is longestStill of the control.
func longestOfMachine(control []watched) (picture, sound time.Duration) {
	picture, sound = longestStill(control)
	return min(picture, mostOfMachine), min(sound, mostOfMachine)
}

// wantOnly lets a page want one camera at a size, whatever its layout says.
func wantOnly(t *testing.T, p *participant, peer string, width, height int) {
	t.Helper()
	p.mustEval(t, fmt.Sprintf(`(() => {
	  globalThis.__setView ??= window.call.setView.bind(window.call);
	  window.call.setView = () => {};
	  globalThis.__setView([{ peer: %q, source: 'camera', width: %d, height: %d }]);
	})()`, peer, width, height), nil)
}

// narrowBits carries the sound of two people and the lowest layer, and not the highest one, even at half of its frames.
const narrowBits = 300_000

// What a person would accept. Pauses that the control, on a wide path, had in the same time are allowed besides, up to
// mostOfMachine.
const (
	longestPicture = 2500 * time.Millisecond
	longestSound   = time.Second
	settledPicture = 1500 * time.Millisecond // when the lower layer has been there for 5 s
	leastFrames    = 50                      // in 15 s, of 225, of which every second may be left out
	backWithin     = 20 * time.Second
	mostOfMachine  = 3 * time.Second
)

// TestNarrowLink narrows one viewer's way down: the picture steps down within seconds, never stands still for long, and
// comes back when the way is wide again. The other viewer keeps the highest layer. Then it hides the tile, and its bytes
// stop. In the end its sound comes late, and the node is killed.
func TestNarrowLink(t *testing.T) {
	needChromium(t, 3)
	// One signaling node: no other room is looked at. Two media nodes: it is known where the call moves.
	c := startCluster(t, devcluster.Options{SFU: 2, Signaling: 1})
	const room = "narrow"
	sender := join(t, c.URL(), room, "Sender", url.Values{"width": {"960"}, "height": {"540"}, "fps": {"15"}, "simulcast": {"1"}})
	sender.knowsItself(t)
	before := heldOnce(t, c, room)
	path := startRelay(t, mediaOf(t, c, before.Node))
	narrow := join(t, c.URL(), room, "Narrow", url.Values{"via": {path.via()}})
	wide := join(t, c.URL(), room, "Wide", nil)
	for _, p := range []*participant{narrow, wide} {
		p.knowsItself(t)
		wantOnly(t, p, sender.id, 960, 540)
		eventually(t, 2*time.Minute, p.name+" is shown the highest layer", func() error {
			if w := watch(t, p, sender.id); w.width != 960 {
				return fmt.Errorf("the picture is %g wide; %s sends %+v", w.width, sender.name, sender.layers())
			}
			return nil
		})
	}
	before = heldOnce(t, c, room)
	t.Run("narrow", func(t *testing.T) { narrowed(t, path, sender.id, narrow, wide) })
	t.Run("hidden", func(t *testing.T) { hidden(t, sender.id, wide, narrow) })
	if after := heldOnce(t, c, room); after.Lost() != before.Lost() {
		t.Errorf("the node dropped %d packets", after.Lost()-before.Lost())
	}
	t.Run("cut", func(t *testing.T) { cut(t, c, path, sender.id, narrow) })
	narrow.visit(t, "about:blank", "true")
	t.Run("late sound", func(t *testing.T) { lateSound(t, c, room, wide) })
}

// cut lets nothing through for a while: the viewer reports that, and gets its media back.
func cut(t *testing.T, c *devcluster.Cluster, path *relay, sender string, viewer *participant) {
	stalled := func(want int) func() error {
		return func() error {
			nodes, err := c.AdminNodes(t.Context())
			got := 0
			for _, n := range nodes {
				got += n.Stalled
			}
			if err == nil && got != want {
				err = fmt.Errorf("%d clients say that nothing arrives, want %d", got, want)
			}
			return err
		}
	}
	path.limit(1) // bit a second
	eventually(t, time.Minute, "the viewer says that nothing arrives", stalled(1))
	path.limit(0)
	since := watch(t, viewer, sender)
	eventually(t, time.Minute, "the picture and the sound are back", func() error {
		if now := watch(t, viewer, sender); now.frames <= since.frames || now.sound <= since.sound {
			return fmt.Errorf("%g frames and %g packets of sound more", now.frames-since.frames, now.sound-since.sound)
		}
		return nil
	})
	eventually(t, time.Minute, "it says so no longer", stalled(0))
}

func narrowed(t *testing.T, path *relay, sender string, narrow, wide *participant) {
	wideBefore := watch(t, wide, sender)
	path.limit(narrowBits)
	began := time.Now()
	lower := func(w watched) bool { return w.width < 960 && w.width > 0 }
	down, wideDown := watchFor(t, 15*time.Second, narrow, wide, sender, lower)
	if !lower(down[len(down)-1]) {
		t.Fatalf("the picture is still %g wide 15 s after the path became narrow; %g frames decoded and %g packets of sound in that time, %d packets lost on the path",
			down[len(down)-1].width, down[len(down)-1].frames-down[0].frames, down[len(down)-1].sound-down[0].sound, path.dropped())
	}
	t.Logf("stepped down to %g after %v", down[len(down)-1].width, time.Since(began).Round(time.Millisecond))
	stayed, wideStayed := watchFor(t, 15*time.Second, narrow, wide, sender, nil)
	picture, sound := longestStill(slices.Concat(down, stayed))
	steady, steadySound := longestStill(stayed[len(stayed)/3:])
	widePicture, wideSound := longestOfMachine(slices.Concat(wideDown, wideStayed))
	first, last := stayed[0], stayed[len(stayed)-1]
	t.Logf("narrow: %.1f frames/s, longest still %v (picture) and %v (sound), once settled %v and %v; %d packets lost on the path; the other viewer: %v and %v",
		(last.frames-first.frames)/last.at.Sub(first.at).Seconds(), picture, sound, steady, steadySound, path.dropped(), widePicture, wideSound)
	if picture > longestPicture+widePicture || steady > settledPicture+widePicture {
		t.Errorf("the picture stood still for %v, once settled for %v", picture, steady)
	}
	if sound > longestSound+wideSound {
		t.Errorf("no sound came for %v", sound)
	}
	if last.frames-first.frames < leastFrames && widePicture < time.Second { // else the machine stood still for both viewers
		t.Errorf("%g frames decoded in %v", last.frames-first.frames, last.at.Sub(first.at))
	}
	path.limit(0)
	began = time.Now()
	back, wideBack := watchFor(t, 2*backWithin, narrow, wide, sender, func(w watched) bool { return w.width == 960 })
	if got, after := back[len(back)-1].width, time.Since(began); got != 960 || after > backWithin {
		t.Errorf("the picture is %g wide %v after the path became wide", got, after)
	}
	// Stepping up must not pause it either.
	widePicture, wideSound = longestOfMachine(wideBack)
	if picture, sound := longestStill(back); picture > settledPicture+widePicture || sound > longestSound+wideSound {
		t.Errorf("on the way back the picture stood still for %v, and sound for %v", picture, sound)
	}
	t.Logf("back at %g after %v", back[len(back)-1].width, time.Since(began).Round(time.Millisecond))
	if w := watch(t, wide, sender); w.width != 960 || w.frames-wideBefore.frames < 5*w.at.Sub(wideBefore.at).Seconds() {
		t.Errorf("the other viewer has a picture %g wide and decoded %g frames in %v", w.width, w.frames-wideBefore.frames, w.at.Sub(wideBefore.at))
	}
}

// hidden hides the camera at one viewer, and shows it again.
func hidden(t *testing.T, sender string, viewer, other *participant) {
	bytes := func() (video, audio float64) {
		for _, slot := range viewer.mustStats(t).PerSlot {
			switch {
			case slot.Peer == sender && slot.Source == "camera":
				video = slot.BytesReceived
			case slot.Peer == sender && slot.Source == "microphone":
				audio = slot.PacketsReceived
			}
		}
		return video, audio
	}
	wantOnly(t, viewer, sender, 0, 0)
	var video, audio float64
	eventually(t, 10*time.Second, "the bytes stop", func() error {
		now, _ := bytes()
		still := now == video
		video = now
		if !still {
			return fmt.Errorf("%g bytes so far", now)
		}
		return nil
	})
	video, audio = bytes()
	watchFor(t, 3*time.Second, viewer, other, sender, nil)
	videoAfter, audioAfter := bytes()
	if videoAfter != video || audioAfter-audio < 50 {
		t.Errorf("hidden for 3 s: %g bytes of video and %g packets of sound came", videoAfter-video, audioAfter-audio)
	}
	wantOnly(t, viewer, sender, 960, 540)
	eventually(t, 10*time.Second, "the picture is back", func() error {
		if now, _ := bytes(); now == video {
			return fmt.Errorf("no bytes since it was shown again")
		}
		return nil
	})
}
