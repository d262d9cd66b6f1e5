package e2e

import (
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
)

const (
	pathLoss = 0.1
	soundWay = 20 * time.Millisecond // of sound, down
	// mostConcealed is twice the goal: browsers that wait for a core play late.
	mostConcealed = 0.02
	// mostResent bounds retransmissions for each lost packet, lost ones included. A browser also counts the old packets
	// with which it probes the path.
	mostResent, mostResentByBrowser = 1.5, 2.5
)

// TestLossyPaths loses a tenth of the media on the way from the browser to the node in one call, and on the way back in
// another. A lost picture packet is sent again about once, the picture goes on, and of what is heard hardly anything is
// made up.
func TestLossyPaths(t *testing.T) {
	needChromium(t, 4)
	c := startCluster(t, devcluster.Options{SFU: 1, Signaling: 1})
	for _, name := range []string{"up", "down"} {
		path := startRelay(t, mediaOf(t, c, "sfu-1"))
		via := url.Values{"width": {"320"}, "height": {"180"}, "fps": {"10"}, "via": {path.via()}}
		senders, viewers := url.Values{"width": {"320"}, "height": {"180"}, "fps": {"10"}}, via
		if name == "up" {
			senders, viewers = via, senders
			via["width"], via["height"] = []string{"640"}, []string{"360"} // The browser's probes are to be few beside its losses.
		}
		sender, viewer := join(t, c.URL(), name, "Sender", senders), join(t, c.URL(), name, "Viewer", viewers)
		sender.knowsItself(t)
		viewer.knowsItself(t)
		allDecodeAll(t, time.Minute, []*participant{sender, viewer})
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name == "up" {
				repaired(t, path, viewer, sender, sender, "outbound-rtp", mostResentByBrowser)
			} else {
				repaired(t, path, viewer, sender, viewer, "inbound-rtp", mostResent)
			}
		})
	}
}

// repaired loses packets, and looks at what the viewer sees and hears, and at what one end, whose lost pictures are
// counted, says of them.
func repaired(t *testing.T, path *relay, viewer, sender, end *participant, direction string, most float64) {
	before, seen := resentVideo(t, end, direction), watch(t, viewer, sender.id)
	again := func(now resent) int { // so many were sent again
		if direction == "outbound-rtp" {
			return now.Packets
		}
		return path.sentOf(before.RTX)
	}
	first := again(before)
	path.delaySound(soundWay)
	path.lose(pathLoss)
	const settles, lasts = 10 * time.Second, 20 * time.Second // the jitter buffer grows, and the node learns of the loss
	<-time.After(settles)
	heard := hears(t, viewer)
	<-time.After(lasts)
	after := hears(t, viewer)
	path.lose(0)
	share := (after.Concealed - heard.Concealed) / max(after.Samples-heard.Samples, 1)
	t.Logf("%.0f%% loss for %v: %.2f%% of the sound is concealed; %g packets came, %g are missing, the listener asked %g times",
		100*pathLoss, lasts, 100*share, after.Packets-heard.Packets, after.Lost-heard.Lost, after.NACKs-heard.NACKs)
	if after.Samples-heard.Samples < 0.8*48_000*lasts.Seconds() {
		t.Errorf("%g samples were played in %v", after.Samples-heard.Samples, lasts)
	}
	if share > mostConcealed {
		t.Errorf("%.2f%% of the sound is concealed, want at most %g%%", 100*share, 100*mostConcealed)
	}
	now := watch(t, viewer, sender.id)
	if now.frames-seen.frames < 2*(settles+lasts).Seconds() {
		t.Errorf("%g frames were decoded in %v of loss", now.frames-seen.frames, now.at.Sub(seen.at))
	}
	eventually(t, time.Minute, "the picture goes on without loss", func() error { // longer than anything is asked for
		if w := watch(t, viewer, sender.id); w.frames < now.frames+20 {
			return fmt.Errorf("%g frames", w.frames-now.frames)
		}
		return nil
	})
	at := resentVideo(t, end, direction)
	lost := path.lostOf(before.SSRC)
	ratio := float64(again(at)-first) / float64(max(lost, 1))
	t.Logf("%d picture packets lost, %d NACKs, %.2f retransmissions for each", lost, at.NACKs-before.NACKs, ratio)
	if lost < 10 || ratio > most || ratio < 0.5 {
		t.Errorf("%.2f retransmissions for each of %d lost packets, want about 1 and at most %g", ratio, lost, most)
	}
}

// resent is what a page's connection says of the video that it sends or receives.
type resent struct {
	SSRC, RTX uint32
	Packets   int // retransmissions that it sent
	NACKs     int
}

// resentVideo reads one direction, "outbound-rtp" or "inbound-rtp": the stream with most packets.
func resentVideo(t *testing.T, p *participant, direction string) resent {
	t.Helper()
	var r resent
	p.mustEval(t, fmt.Sprintf(`(async () => {
	  let most = {}, packets = (s) => s ? (s.packetsSent ?? s.packetsReceived ?? 0) : 0;
	  for (const c of globalThis.__connections.filter((c) => c.signalingState !== 'closed'))
	    for (const s of (await c.getStats()).values())
	      if (s.type === %q && s.kind === 'video' && packets(s) > packets(most)) most = s;
	  return {
	    SSRC: most.ssrc ?? 0, RTX: most.rtxSsrc ?? 0, Packets: most.retransmittedPacketsSent ?? 0, NACKs: most.nackCount ?? 0,
	  };
	})()`, direction), &r)
	return r
}

// heard is what a page has played of all sound that came, in samples, and how it was repaired.
type heard struct {
	Samples, Concealed float64
	Packets, Lost      float64
	NACKs              float64
}

func hears(t *testing.T, p *participant) heard {
	t.Helper()
	var h heard
	p.mustEval(t, `(async () => {
	  const h = { Samples: 0, Concealed: 0, Packets: 0, Lost: 0, NACKs: 0 };
	  for (const c of globalThis.__connections.filter((c) => c.signalingState !== 'closed'))
	    for (const s of (await c.getStats()).values()) {
	      if (s.type !== 'inbound-rtp' || s.kind !== 'audio' || !s.packetsReceived) continue;
	      h.Samples += s.totalSamplesReceived; h.Concealed += s.concealedSamples - s.silentConcealedSamples;
	      h.Packets += s.packetsReceived; h.Lost += s.packetsLost; h.NACKs += s.nackCount ?? 0;
	    }
	  return h;
	})()`, &h)
	return h
}
