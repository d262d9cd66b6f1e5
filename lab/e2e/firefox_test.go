//go:build linux

package e2e

import (
	"fmt"
	"maps"
	"net/url"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
	"github.com/holdfast-rtc/holdfast/ring"
)

// mixed are two people in calls between Firefox and Chromium.
type mixed struct {
	c           *devcluster.Cluster
	fox, chrome *participant
	room        string
	node        string // that has the room
}

// TestFirefoxAndChromium is what the two browsers do in calls with each other, one call after the other.
func TestFirefoxAndChromium(t *testing.T) {
	t.Parallel()
	needFirefox(t, atOnce) // beside others it takes six times as long
	c := startCluster(t, devcluster.Options{MediaHost: ownAddress(t)})
	b := &mixed{
		c:      c,
		fox:    &participant{page: openFirefox(t, "Felix", c.URL()+"?name=Felix")},
		chrome: &participant{page: openPage(t, "Clara", c.URL()+"?name=Clara")},
	}
	t.Run("codecs", func(t *testing.T) { codecMatrix(t, b) })
	t.Run("another path", func(t *testing.T) { anotherPath(t, b) })
	t.Run("kill", func(t *testing.T) { killedUnderBoth(t, b) })
	t.Run("Firefox is not believed", func(t *testing.T) { notBelieved(t, b) })
	t.Run("encrypted", func(t *testing.T) {
		b.call(t, "sfu-3", withKey(newKey(), nil), nil)
		for _, p := range b.people() {
			p.sees(t, "that the call is encrypted", `!document.querySelector('#encrypted').hidden`)
		}
		b.kill(t)
	})
}

func (b *mixed) people() []*participant { return []*participant{b.fox, b.chrome} }

// call has both leave their call, and begins another one on a node.
func (b *mixed) call(t *testing.T, node ring.NodeID, query, ofFox url.Values) {
	t.Helper()
	b.room, b.node = roomOn(t, node, t.Name()), string(node)
	for _, p := range b.people() {
		q := url.Values{}
		maps.Copy(q, query)
		if p == b.fox {
			maps.Copy(q, ofFox)
		}
		p.id = ""
		p.visit(t, callAddress(b.c.URL(), b.room, p.name, q), "globalThis.call")
	}
	for _, p := range b.people() {
		p.knowsItself(t)
	}
	allDecodeAll(t, time.Minute, b.people())
	if held := heldOnce(t, b.c, b.room); held.Node != b.node {
		t.Fatalf("the room is on %s, want %s", held.Node, b.node)
	}
}

// kill kills the room's node and waits until both have moved, each in the way its browser can; it prints the gaps. In
// the end the node is back.
func (b *mixed) kill(t *testing.T) {
	t.Helper()
	before := map[*participant]callStats{b.fox: b.fox.mustStats(t), b.chrome: b.chrome.mustStats(t)}
	held := heldOnce(t, b.c, b.room)
	kill(t, b.c, held.Node)
	for p, how := range map[*participant]string{b.fox: "new-connection", b.chrome: "restart"} {
		after := p.awaitsMove(t, before[p], how)
		if same := after.PcID == before[p].PcID; same != (how == "restart") {
			t.Errorf("%s: connection %d became %d by %s", p.name, before[p].PcID, after.PcID, how)
		}
		if m := after.Migrations[len(after.Migrations)-1]; m.Attempt != 1 {
			t.Errorf("%s: attempt %d, want the first", p.name, m.Attempt)
		}
	}
	allDecodeAll(t, 30*time.Second, b.people())
	if after := heldOnce(t, b.c, b.room); after.Epoch != held.Epoch+1 {
		t.Errorf("room %s went from epoch %d to %d, want exactly one re-homing", b.room, held.Epoch, after.Epoch)
	}
	restart(t, b.c, held.Node)
}

// killedUnderBoth: Chromium keeps its connection; Firefox, which cannot redo DTLS on a live one, takes a new one at once,
// under the same elements and streams. Each can choose every layer of the other, also at the node that takes over. There
// Chromium goes on with SSRCs of which it does not repeat the layer; Firefox begins with new ones.
func killedUnderBoth(t *testing.T, b *mixed) {
	size := func(width, height string) url.Values { return url.Values{"width": {width}, "height": {height}} }
	b.call(t, "sfu-1", url.Values{"width": {"640"}, "height": {"360"}, "fps": {"10"}, "simulcast": {"1"}}, size("960", "540"))
	layersChosen := func() {
		t.Helper()
		for _, width := range []int{320, 640} {
			showsAt(t, b.fox, b.chrome, width)
		}
		for _, width := range []int{240, 960} {
			showsAt(t, b.chrome, b.fox, width)
		}
	}
	layersChosen()
	for _, p := range b.people() {
		p.mark(t)
		p.watchFrames(t)
	}
	b.kill(t)
	for _, p := range b.people() {
		told, stood := p.mustStats(t).lastGap(), p.longestFrameGap(t)
		t.Logf("longest time without a new picture: %s %v, told %v", p.name, stood, told)
		// The page also sees late frames, but a gap without the picture would be 0 or the sound's.
		if told < stood/3 {
			t.Errorf("%s: told a gap of %v, its picture stood for %v", p.name, told, stood)
		}
	}
	b.chrome.unchanged(t)
	b.fox.sameElements(t)
	layersChosen()
}

// notBelieved makes the library restart Firefox's connection, which then reports `connected` and decrypts nothing. After
// three attempts a new connection brings the call back. The camera is one small layer, at its full size.
func notBelieved(t *testing.T, b *mixed) {
	b.call(t, "sfu-2", url.Values{"restart": {"1"}, "simulcast": {"1"}}, nil)
	showsAt(t, b.chrome, b.fox, 320)
	before := b.fox.mustStats(t)
	kill(t, b.c, b.node)
	if m := b.fox.awaitsMove(t, before, "new-connection").Migrations[0]; m.Attempt != 4 {
		t.Errorf("attempt %d brought the call back, want the fourth, after three restarts", m.Attempt)
	}
	allDecodeAll(t, 30*time.Second, b.people())
	showsAt(t, b.chrome, b.fox, 320)
	restart(t, b.c, b.node)
}

// anotherPath takes Firefox's path away until it offers again, and gives it one from another address: the call comes back
// on the same node, as nobody's migration.
func anotherPath(t *testing.T, b *mixed) {
	path := startRelay(t, mediaOf(t, b.c, "sfu-1"))
	b.call(t, "sfu-1", nil, url.Values{"via": {path.via()}})
	before := map[*participant]callStats{b.fox: b.fox.mustStats(t), b.chrome: b.chrome.mustStats(t)}
	held := heldOnce(t, b.c, b.room)
	for _, p := range b.people() {
		p.mark(t)
	}
	began := time.Now()
	path.cut(true)
	eventually(t, time.Minute, b.fox.name+" offers again", func() error {
		s, err := b.fox.stats()
		if err == nil && s.OffersSent == before[b.fox].OffersSent {
			err = fmt.Errorf("%d offers sent", s.OffersSent)
		}
		return err
	})
	path.cut(false)
	allDecodeAll(t, time.Minute, b.people())
	t.Logf("media flowed again %v after the path was lost; connection %d became %d", time.Since(began).Round(time.Millisecond), before[b.fox].PcID, b.fox.mustStats(t).PcID)
	for _, p := range b.people() {
		p.sameElements(t)
		if s := p.mustStats(t); len(s.Migrations) != 0 {
			t.Errorf("%s: migrated, %+v", p.name, s.Migrations)
		}
	}
	b.chrome.unchanged(t)
	if s := b.chrome.mustStats(t); s.OffersSent != before[b.chrome].OffersSent {
		t.Errorf("%s: %d offers became %d", b.chrome.name, before[b.chrome].OffersSent, s.OffersSent)
	}
	if after := heldOnce(t, b.c, b.room); after.Epoch != held.Epoch {
		t.Errorf("room %s went from epoch %d to %d", b.room, held.Epoch, after.Epoch)
	}
}

// showsAt asks for somebody's picture in a width and waits until frames of that width are decoded. A browser sends the
// largest layer once its estimate of the bandwidth has grown to it, slowly on a busy machine.
func showsAt(t *testing.T, viewer, sender *participant, width int) {
	t.Helper()
	viewer.mustEval(t, fmt.Sprintf("window.call.setView([{peer: %q, source: 'camera', width: %d, height: %d}])", sender.id, width, width*9/16), nil)
	var frames float64
	eventually(t, 90*time.Second, fmt.Sprintf("%s sees %s at %d pixels", viewer.name, sender.name, width), func() error {
		s, err := viewer.stats()
		if err != nil {
			return err
		}
		for _, slot := range s.PerSlot {
			if slot.Peer != sender.id || slot.Source != "camera" {
				continue
			}
			if slot.FrameWidth != float64(width) {
				frames = 0
				return fmt.Errorf("frames are %g pixels wide; %s sends %+v", slot.FrameWidth, sender.name, sender.layers())
			}
			if frames == 0 {
				frames = slot.FramesDecoded
			}
			if slot.FramesDecoded-frames >= someFrames {
				return nil
			}
			return fmt.Errorf("%g frames decoded at that width", slot.FramesDecoded-frames)
		}
		return fmt.Errorf("no slot shows %s", sender.name)
	})
}
