package e2e

import (
	"fmt"
	"net/url"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
)

// TestMediaDoesNotNeedASignalingNode kills both signaling nodes in turn: every socket breaks at least once, and media
// never stops.
func TestMediaDoesNotNeedASignalingNode(t *testing.T) {
	needChromium(t)
	c := startCluster(t, devcluster.Options{})
	room := roomOn(t, "sfu-1", "edge")
	people := []*participant{join(t, c.URL(), room, "Grace", nil), join(t, c.URL(), room, "Hedy", nil)}
	for _, p := range people {
		p.knowsItself(t)
	}
	allDecodeAll(t, time.Minute, people)
	before := heldOnce(t, c, room)
	for _, p := range people {
		p.mark(t)
		p.watchFrames(t)
	}
	for _, name := range []string{"signaling-1", "signaling-2"} {
		if err := c.Kill(t.Context(), name, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		eventually(t, time.Minute, "both are attached again after the kill of "+name, func() error {
			held, err := askHoldings(t.Context(), c)
			if err != nil {
				return err
			}
			return allAttached(held[room], len(people))
		})
		if _, err := c.Restart(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	// The sessions work again: what one says reaches the other.
	people[0].mustEval(t, "window.call.setMuted('microphone', true)", nil)
	eventually(t, time.Minute, "the mute reaches the other page", func() error {
		var muted bool
		if err := people[1].eval(fmt.Sprintf("window.call.roster.find((p) => p.peer === %q)?.audioMuted ?? false", people[0].id), &muted); err != nil {
			return err
		}
		if !muted {
			return fmt.Errorf("%s is not shown as muted", people[0].name)
		}
		return nil
	})
	for _, p := range people {
		p.unchanged(t)
		if gap := p.longestFrameGap(t); gap > maxUndisturbedGap {
			t.Errorf("%s: %v without a new frame while signaling nodes died", p.name, gap)
		}
	}
	sameRoom(t, before, heldOnce(t, c, room))
}

// maxUndisturbedGap is far above what a loaded machine loses and below any reconnection of media.
const maxUndisturbedGap = 2 * time.Second

func allAttached(held []heldRoom, want int) error {
	if len(held) != 1 {
		return fmt.Errorf("held by %d nodes", len(held))
	}
	attached := 0
	for _, p := range held[0].Peers {
		if p.Attached {
			attached++
		}
	}
	if attached != want {
		return fmt.Errorf("%d of %d peers are attached to a signaling node", attached, want)
	}
	return nil
}

// watchFrames notes, in the page, the longest time between two decoded frames
// of any picture of somebody else.
func (p *participant) watchFrames(t *testing.T) {
	t.Helper()
	var watched int
	p.mustEval(t, `(() => {
	  globalThis.__gap = 0;
	  const cameras = call.roster.filter(({ peer }) => peer !== call.peer).map(({ peer }) => call.stream(peer, 'camera'));
	  const others = [...document.querySelectorAll('video')].filter((v) => cameras.includes(v.srcObject) && v.videoWidth > 0);
	  for (const video of others) {
	    let last = performance.now();
	    const each = () => { const now = performance.now(); globalThis.__gap = Math.max(globalThis.__gap, now - last); last = now; video.requestVideoFrameCallback(each); };
	    video.requestVideoFrameCallback(each);
	  }
	  return others.length;
	})()`, &watched)
	if watched != 1 {
		t.Fatalf("%s: %d pictures of others to watch, want 1", p.name, watched)
	}
}

func (p *participant) longestFrameGap(t *testing.T) time.Duration {
	t.Helper()
	var ms float64
	p.mustEval(t, "globalThis.__gap", &ms)
	return time.Duration(ms * float64(time.Millisecond))
}

// TestFallbackToANewConnection makes the browser reject the answer of the
// restart: the library takes a new connection, and the page does not notice.
func TestFallbackToANewConnection(t *testing.T) {
	needChromium(t)
	c := startCluster(t, devcluster.Options{})
	room := roomOn(t, "sfu-3", "fallback")
	people := []*participant{
		join(t, c.URL(), room, "Rosalind", url.Values{"rejectAnswers": {"1"}}),
		join(t, c.URL(), room, "Rita", nil),
	}
	for _, p := range people {
		p.knowsItself(t)
	}
	allDecodeAll(t, time.Minute, people)
	before := people[0].mustStats(t)
	if err := c.Kill(t.Context(), "sfu-3", syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, 30*time.Second, "Rosalind takes a new connection", func() error {
		s, err := people[0].stats()
		if err != nil {
			return err
		}
		if len(s.Migrations) != 1 || s.Migrations[0].How != "new-connection" || s.PcID == before.PcID {
			return fmt.Errorf("connection %d -> %d, migrations %+v", before.PcID, s.PcID, s.Migrations)
		}
		return nil
	})
	eventually(t, 30*time.Second, "Rita restarts", func() error {
		s, err := people[1].stats()
		if err != nil {
			return err
		}
		if len(s.Migrations) != 1 || s.Migrations[0].How != "restart" {
			return fmt.Errorf("migrations %+v", s.Migrations)
		}
		return nil
	})
	allDecodeAll(t, 30*time.Second, people)
	heldOnce(t, c, room)
}
