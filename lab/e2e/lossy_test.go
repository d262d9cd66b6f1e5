package e2e

import (
	"fmt"
	"net/url"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
)

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

const (
	// mostResent bounds retransmissions for each lost packet, lost ones included. A browser also counts the old packets
	// with which it probes the path.
	mostResent, mostResentByBrowser = 1.5, 2.0
	lostAtOnce                      = 40 // originals lost until the figures are read
)

// TestLossyPaths: a lost packet is sent again about once, from the browser to the node and back, and the picture goes
// on. With HOLDFAST_LOSS_MATRIX=1 also at 2 % loss, which takes minutes.
func TestLossyPaths(t *testing.T) {
	needChromium(t)
	c := startCluster(t, devcluster.Options{SFU: 1, Signaling: 1})
	node, err := c.Node(t.Context(), "sfu-1")
	if err != nil {
		t.Fatal(err)
	}
	media := node.Addresses[devcluster.AddressMedia]
	up, down := startRelay(t, media), startRelay(t, media)
	sender := join(t, c.URL(), "lossy", "Sender", url.Values{"width": {"960"}, "height": {"540"}, "fps": {"15"}, "via": {strconv.Itoa(up.port(t))}})
	viewer := join(t, c.URL(), "lossy", "Viewer", url.Values{"via": {strconv.Itoa(down.port(t))}})
	for _, p := range []*participant{sender, viewer} {
		p.knowsItself(t)
	}
	wantOnly(t, viewer, sender.id, 960, 540)
	eventually(t, time.Minute, "the viewer sees the sender", func() error {
		if w := watch(t, viewer, sender.id); w.frames < 15 {
			return fmt.Errorf("%g frames were decoded", w.frames)
		}
		return nil
	})
	losses := []float64{0.1}
	if os.Getenv("HOLDFAST_LOSS_MATRIX") != "" {
		losses = append(losses, 0.02)
	}
	for _, loss := range losses {
		t.Run(fmt.Sprintf("up %g", loss), func(t *testing.T) {
			before := resentVideo(t, sender, "outbound-rtp")
			lost := lossyFor(t, up, loss, before.SSRC, viewer, sender.id)
			after := resentVideo(t, sender, "outbound-rtp")
			judgeResent(t, after.Packets-before.Packets, lost, after.NACKs-before.NACKs, mostResentByBrowser)
		})
		t.Run(fmt.Sprintf("down %g", loss), func(t *testing.T) {
			before := resentVideo(t, viewer, "inbound-rtp")
			resentBefore := down.sentOf(before.RTX)
			lost := lossyFor(t, down, loss, before.SSRC, viewer, sender.id)
			after := resentVideo(t, viewer, "inbound-rtp")
			judgeResent(t, down.sentOf(before.RTX)-resentBefore, lost, after.NACKs-before.NACKs, mostResent)
		})
	}
}

// lossyFor loses media until enough originals are lost, then waits for the retransmissions. It returns how many were
// lost.
func lossyFor(t *testing.T, path *relay, loss float64, ssrc uint32, viewer *participant, sender string) int {
	t.Helper()
	before := path.lostOf(ssrc)
	seen := watch(t, viewer, sender)
	path.lose(loss)
	eventually(t, 3*time.Minute, "enough packets are lost", func() error {
		if lost := path.lostOf(ssrc) - before; lost < lostAtOnce {
			return fmt.Errorf("%d of %d", lost, lostAtOnce)
		}
		return nil
	})
	path.lose(0)
	if now := watch(t, viewer, sender); now.frames-seen.frames < 15 {
		t.Errorf("%g frames were decoded in %v of loss", now.frames-seen.frames, now.at.Sub(seen.at))
	}
	const frames = 30 // two seconds: longer than anything is asked for
	seen = watch(t, viewer, sender)
	eventually(t, time.Minute, "the picture goes on without loss", func() error {
		if now := watch(t, viewer, sender); now.frames < seen.frames+frames {
			return fmt.Errorf("%g frames", now.frames-seen.frames)
		}
		return nil
	})
	return path.lostOf(ssrc) - before
}

func judgeResent(t *testing.T, again, lost, nacks int, most float64) {
	t.Helper()
	ratio := float64(again) / float64(lost)
	t.Logf("%d packets lost, %d NACKs, %d retransmissions: %.2f for each", lost, nacks, again, ratio)
	if ratio > most || ratio < 0.5 {
		t.Errorf("%.2f retransmissions for each lost packet, want about 1 and at most %g", ratio, most)
	}
}
