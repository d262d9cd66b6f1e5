//go:build linux

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/tool"
	"github.com/holdfast-rtc/holdfast/lab/devcluster"
)

// needFirefox fails where the tests must be whole and says what is not tested
// where they need not be.
func needFirefox(t *testing.T) {
	t.Helper()
	needChromium(t)
	tool.Find(t, "firefox-esr")
	tool.Find(t, "ip")
	err := mayMakeNetns()
	switch {
	case err == nil:
	case os.Getenv("CI") == "true":
		t.Fatalf("no network namespace can be made here (%v): a call between Firefox and Chromium is tested in real browsers", err)
	default:
		t.Skipf("no network namespace can be made here, root has that right (%v): a call between Firefox and Chromium is NOT tested", err)
	}
}

// openFirefox starts Firefox in the namespace on an address; it ends with the
// test. The preferences are beside those that every test needs.
func openFirefox(t *testing.T, inside *netns, name, address string, preferences ...string) *page {
	t.Helper()
	at := startFirefox(t, inside, preferences)
	ctx, cancel := context.WithTimeout(context.Background(), firefoxStart)
	defer cancel()
	b, err := dialBidi(ctx, inside, at)
	if err != nil {
		t.Fatal(err)
	}
	p := &page{name: name}
	listening, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		b.listen(listening, p.onEvent)
	}()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("console of %s:\n%s", name, p.consoleText())
		}
		stop()
		<-ended
		_ = b.conn.CloseNow()
	})
	var tree struct {
		Contexts []struct {
			Context string `json:"context"`
		} `json:"contexts"`
	}
	type params map[string]any
	for _, command := range []struct {
		method string
		params func() params
		into   any
	}{
		{"session.new", func() params { return params{"capabilities": params{}} }, nil},
		{"session.subscribe", func() params { return params{"events": []string{"log.entryAdded"}} }, nil},
		{"script.addPreloadScript", func() params { return params{"functionDeclaration": "() => {" + watchConnections + "}"} }, nil},
		{"browsingContext.getTree", func() params { return params{} }, &tree},
		{"browsingContext.navigate", func() params {
			return params{"context": tree.Contexts[0].Context, "url": address, "wait": "none"}
		}, nil},
	} {
		if err := b.call(ctx, command.method, command.params(), command.into); err != nil {
			t.Fatalf("open %s in the Firefox of %s: %v", address, name, err)
		}
		if command.into == &tree && len(tree.Contexts) == 0 {
			t.Fatal("Firefox has no tab")
		}
	}
	p.run = func(ctx context.Context, script string) (string, error) {
		return b.evaluate(ctx, tree.Contexts[0].Context, script)
	}
	return p
}

func (p *page) onEvent(_ string, params json.RawMessage) {
	var entry struct {
		Level string `json:"level"`
		Text  string `json:"text"`
	}
	if err := json.Unmarshal(params, &entry); err == nil {
		p.note(entry.Level + ": " + entry.Text)
	}
}

// bothBrowsers starts a cluster that Firefox can reach, and a room on sfu-1 with Felix in Firefox and Clara in Chromium.
func bothBrowsers(t *testing.T, inside *netns, extra url.Values) (c *devcluster.Cluster, room string, fox, chrome *participant) {
	t.Helper()
	c = startCluster(t, devcluster.Options{MediaHost: inside.host})
	room = roomOn(t, "sfu-1", "browsers")
	front := strings.TrimSuffix(strings.TrimPrefix(c.URL(), "http://"), "/")
	from := "http://" + inside.forward(t, front)
	fox = &participant{page: openFirefox(t, inside, "Felix", callAddress(from, room, "Felix", extra))}
	chrome = join(t, c.URL(), room, "Clara", extra)
	for _, p := range []*participant{fox, chrome} {
		p.knowsItself(t)
	}
	allDecodeAll(t, time.Minute, []*participant{fox, chrome})
	if held := heldOnce(t, c, room); held.Node != "sfu-1" {
		t.Fatalf("the room is on %s, want sfu-1", held.Node)
	}
	return c, room, fox, chrome
}

// killUnder kills the room's node and waits until both have moved, each in the
// way its browser can; it prints the gaps.
func killUnder(t *testing.T, c *devcluster.Cluster, room string, fox, chrome *participant) {
	t.Helper()
	before := map[*participant]callStats{fox: fox.mustStats(t), chrome: chrome.mustStats(t)}
	held := heldOnce(t, c, room)
	if err := c.Kill(t.Context(), held.Node, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for p, how := range map[*participant]string{fox: "new-connection", chrome: "restart"} {
		eventually(t, 30*time.Second, p.name+" is moved", func() error { return moved(p, before[p], how) })
		after := p.mustStats(t)
		if same := after.PcID == before[p].PcID; same != (how == "restart") {
			t.Errorf("%s: connection %d became %d by %s", p.name, before[p].PcID, after.PcID, how)
		}
		m := after.Migrations[len(after.Migrations)-1]
		if m.Attempt != 1 {
			t.Errorf("%s: attempt %d, want the first", p.name, m.Attempt)
		}
		t.Logf("gap of %s: %.0f ms (%s, attempt %d)", p.name, m.GapMs, m.How, m.Attempt)
	}
	allDecodeAll(t, 30*time.Second, []*participant{fox, chrome})
	if after := heldOnce(t, c, room); after.Epoch != held.Epoch+1 {
		t.Errorf("room %s went from epoch %d to %d, want exactly one re-homing", room, held.Epoch, after.Epoch)
	}
}

// TestFirefoxAndChromium has Firefox's address change, and then kills their node twice.
func TestFirefoxAndChromium(t *testing.T) {
	needFirefox(t)
	inside := newNetns(t)
	c, room, fox, chrome := bothBrowsers(t, inside, nil)
	t.Run("another address", func(t *testing.T) { getsAnotherAddress(t, c, inside, room, fox, chrome) })
	t.Run("kill", func(t *testing.T) { throughAKill(t, c, room, fox, chrome) })
}

// throughAKill: each decodes the other before and after their node is killed. Chromium keeps its connection; Firefox,
// which cannot redo DTLS on a live one, takes a new one at once, under the same elements and streams.
func throughAKill(t *testing.T, c *devcluster.Cluster, room string, fox, chrome *participant) {
	fox.mark(t)
	chrome.mark(t)
	for range 2 {
		fox.watchFrames(t)
		chrome.watchFrames(t)
		killUnder(t, c, room, fox, chrome)
		for _, p := range []*participant{fox, chrome} {
			told, stood := p.mustStats(t).lastGap(), p.longestFrameGap(t)
			t.Logf("longest time without a new picture: %s %v, told %v", p.name, stood, told)
			// The page also sees late frames, but a gap without the picture would be 0 or the sound's.
			if told < stood/3 {
				t.Errorf("%s: told a gap of %v, its picture stood for %v", p.name, told, stood)
			}
		}
	}
	chrome.unchanged(t)
	fox.sameElements(t)
}

// TestFirefoxIsNotBelieved makes the library restart Firefox's connection, which then reports `connected` and decrypts
// nothing. After three attempts a new connection brings the call back. The camera is one small layer, at its full size.
func TestFirefoxIsNotBelieved(t *testing.T) {
	t.Parallel() // most of it is waiting
	needFirefox(t)
	c, room, fox, chrome := bothBrowsers(t, newNetns(t), url.Values{"restart": {"1"}, "simulcast": {"1"}})
	showsAt(t, chrome, fox, 320)
	before := fox.mustStats(t)
	if err := c.Kill(t.Context(), heldOnce(t, c, room).Node, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, time.Minute, fox.name+" is moved", func() error { return moved(fox, before, "new-connection") })
	m := fox.mustStats(t).Migrations[0]
	t.Logf("gap of %s: %.0f ms (%s, attempt %d)", fox.name, m.GapMs, m.How, m.Attempt)
	if m.Attempt != 4 {
		t.Errorf("attempt %d brought the call back, want the fourth, after three restarts", m.Attempt)
	}
	allDecodeAll(t, 30*time.Second, []*participant{fox, chrome})
	showsAt(t, chrome, fox, 320)
}

// getsAnotherAddress takes the address away from under Firefox's media
// and gives it another one: the call comes back on the same node, as nobody's migration.
func getsAnotherAddress(t *testing.T, c *devcluster.Cluster, inside *netns, room string, fox, chrome *participant) {
	both := []*participant{fox, chrome}
	before := map[*participant]callStats{fox: fox.mustStats(t), chrome: chrome.mustStats(t)}
	epoch := heldOnce(t, c, room).Epoch
	fox.mark(t)
	chrome.mark(t)
	began := time.Now()
	if err := inside.address(3); err != nil {
		t.Fatal(err)
	}
	eventually(t, time.Minute, fox.name+" offers again", func() error {
		s, err := fox.stats()
		if err == nil && s.OffersSent == before[fox].OffersSent {
			err = fmt.Errorf("%d offers sent", s.OffersSent)
		}
		return err
	})
	allDecodeAll(t, time.Minute, both)
	t.Logf("media flowed again %v after the address was lost; connection %d became %d", time.Since(began).Round(time.Millisecond), before[fox].PcID, fox.mustStats(t).PcID)
	for _, p := range both {
		p.sameElements(t)
		if s := p.mustStats(t); len(s.Migrations) != 0 {
			t.Errorf("%s: migrated, %+v", p.name, s.Migrations)
		}
	}
	chrome.unchanged(t)
	if s := chrome.mustStats(t); s.OffersSent != before[chrome].OffersSent {
		t.Errorf("%s: %d offers became %d", chrome.name, before[chrome].OffersSent, s.OffersSent)
	}
	if after := heldOnce(t, c, room); after.Epoch != epoch {
		t.Errorf("room %s went from epoch %d to %d", room, epoch, after.Epoch)
	}
}

// TestSimulcastFromBothBrowsers: the other browser can choose every layer of each, also at the node that takes over.
// There Chromium goes on with SSRCs of which it does not repeat the layer; Firefox begins with new ones.
func TestSimulcastFromBothBrowsers(t *testing.T) {
	needFirefox(t)
	c, room, fox, chrome := bothBrowsers(t, newNetns(t), url.Values{"width": {"960"}, "height": {"540"}, "fps": {"10"}, "simulcast": {"1"}})
	layersChosen := func() {
		t.Helper()
		for _, way := range []struct{ from, to *participant }{{chrome, fox}, {fox, chrome}} {
			sendsLayers(t, way.from, "q", "h", "f")
			for _, width := range []int{240, 960} {
				showsAt(t, way.to, way.from, width)
			}
		}
	}
	layersChosen()
	killUnder(t, c, room, fox, chrome)
	layersChosen()
}

// A browser sends the largest layer once its estimate of the bandwidth has grown to it, slowly on a busy machine.
const layerLimit = 90 * time.Second

func sendsLayers(t *testing.T, p *participant, rids ...string) {
	t.Helper()
	first := map[string]float64{}
	eventually(t, layerLimit, p.name+" sends its layers", func() error {
		s, err := p.stats()
		if err != nil {
			return err
		}
		frames := map[string]float64{}
		for _, out := range s.Outbound {
			if out.Source == "camera" {
				frames[out.RID] = out.FramesEncoded
			}
		}
		for _, rid := range rids {
			if _, seen := first[rid]; !seen {
				first[rid] = frames[rid]
			}
			if frames[rid]-first[rid] < someFrames {
				return fmt.Errorf("frames encoded so far: %v, first %v", frames, first)
			}
		}
		return nil
	})
}

// showsAt asks for somebody's picture in a width and waits until frames of that
// width are decoded.
func showsAt(t *testing.T, viewer, sender *participant, width int) {
	t.Helper()
	viewer.mustEval(t, fmt.Sprintf("window.call.setView([{peer: %q, source: 'camera', width: %d, height: %d}])", sender.id, width, width*9/16), nil)
	var frames float64
	eventually(t, layerLimit, fmt.Sprintf("%s sees %s at %d pixels", viewer.name, sender.name, width), func() error {
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
				return fmt.Errorf("frames are %g pixels wide", slot.FrameWidth)
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
