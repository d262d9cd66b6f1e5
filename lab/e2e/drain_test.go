package e2e

import (
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
)

// drainedWithin is generous: the deadline, the restarts after it, and what lingers.
const drainedWithin = 90 * time.Second

// TestNobodyNoticesMaintenance: a media node with five rooms, one of two browsers, is drained, and its process ends by itself. Then a
// signaling node is told to end under the call.
func TestNobodyNoticesMaintenance(t *testing.T) {
	t.Parallel()
	needChromium(t, 3)
	c := startCluster(t, devcluster.Options{})
	calls := []*people{}
	for i := range 4 {
		calls = append(calls, gather(t, c, roomOn(t, "sfu-1", fmt.Sprintf("drained-%d", i)), 3))
	}
	room := roomOn(t, "sfu-1", "drained-page")
	pages := joinAll(t, c.URL(), room, nil, "Ada", "Alan")
	allReceive(t, time.Minute, calls)
	before := allOnce(t, c, calls)
	for _, p := range pages {
		p.mark(t)
		p.watchFrames(t)
	}
	said, code := holdfast(t, c, "drain", "sfu-1", "--deadline", "15s")
	t.Log(said)
	if code != 0 || !strings.Contains(said, "sfu-1 is empty and has ended: 5 rooms with 14 people moved in") {
		t.Errorf("drain: exit code %d\n%s", code, said)
	}
	endsWell(t, c, "sfu-1")
	allReceive(t, time.Minute, calls)
	for name, after := range allOnce(t, c, calls) {
		if was := before[name]; after.Node == "sfu-1" || after.Epoch != was.Epoch+1 {
			t.Errorf("room %s went from %s, epoch %d to %s, %d: want one move", name, was.Node, was.Epoch, after.Node, after.Epoch)
		}
	}
	allDecodeAll(t, time.Minute, pages)
	for _, p := range pages {
		p.sameElements(t)
		gap := p.longestFrameGap(t)
		last := p.mustStats(t).Migrations
		t.Logf("%s: %v without a new frame while its node was drained, told of %+v", p.name, gap, last)
		if len(last) != 1 || last[0].How != "live" {
			t.Errorf("%s: moved by %+v, want one live move", p.name, last)
		}
		if gap > maxUndisturbedGap {
			t.Errorf("%s: %v without a new frame", p.name, gap)
		}
	}
	t.Run("a signaling node", func(t *testing.T) { signalingLeaves(t, c, room, pages, calls) })
	t.Run("told twice", func(t *testing.T) { hurried(t, c, calls) })
}

// signalingLeaves: its clients resume at the other one, on the connections that they have, and messages sent meanwhile arrive once, in order.
func signalingLeaves(t *testing.T, c *devcluster.Cluster, room string, pages []*participant, calls []*people) {
	held := heldOnce(t, c, room)
	for _, p := range pages {
		p.mark(t)
		p.mustEval(t, "(() => { globalThis.__lines = []; call.messages.addEventListener('message', ({ detail: { body } }) => __lines.push(body)); globalThis.__gap = 0; })()", nil)
	}
	if err := c.Kill(t.Context(), "signaling-1", syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	var alan string
	pages[1].mustEval(t, "call.roster.find(({ peer }) => peer === call.peer).identity", &alan)
	lines := 0
	eventually(t, drainedWithin, "signaling-1 ends", func() error {
		pages[0].mustEval(t, fmt.Sprintf("(() => { call.messages.send(%q, 'line %d'); })()", alan, lines), nil)
		lines++
		node, err := c.Node(t.Context(), "signaling-1")
		if err == nil && node.State != devcluster.StateDead {
			err = fmt.Errorf("it is %s", node.State)
		}
		time.Sleep(200 * time.Millisecond) //nolint:forbidigo // A person types no faster.
		return err
	})
	endsWell(t, c, "signaling-1")
	pages[1].sees(t, "all that was said", fmt.Sprintf("__lines.length === %d && __lines.every((line, i) => line === `line ${i}`)", lines))
	allReceive(t, time.Minute, calls)
	for _, p := range pages {
		p.unchanged(t)
		gap := p.longestFrameGap(t)
		t.Logf("%s: %v without a new frame while a signaling node was stopped", p.name, gap)
		if gap > maxUndisturbedGap {
			t.Errorf("%s: %v without a new frame", p.name, gap)
		}
	}
	sameRoom(t, held, heldOnce(t, c, room))
}

// hurried gets a second SIGTERM at once: its rooms move by restarts, and its process ends.
func hurried(t *testing.T, c *devcluster.Cluster, calls []*people) {
	node := calls[0].onceOn(t, c).Node
	for range 2 {
		if err := c.Kill(t.Context(), node, syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		// Two signals that wait are one.
		eventually(t, time.Minute, "the node heeds the signal", func() error { return logged(t, c, node, "it takes no more rooms") })
	}
	calls[0].leavesNode(t, node)
	endsWell(t, c, node)
	allReceive(t, time.Minute, calls)
	if err := logged(t, c, node, "told to hurry"); err != nil {
		t.Error(err)
	}
}

// TestADrainWithoutHeadroomHurtsNobody: it says so, and is undone. One by SIGTERM waits too, and ends when another node comes.
func TestADrainWithoutHeadroomHurtsNobody(t *testing.T) {
	t.Parallel()
	takes(t, 1)
	narrow := []string{"HOLDFAST_EGRESS_BITS=900000", "HOLDFAST_DRAIN_TIMEOUT=2s"} // a room of three sends 700 kbit/s
	c := startCluster(t, devcluster.Options{SFU: 2, NodeEnv: map[string][]string{"sfu-1": narrow, "sfu-2": narrow}})
	calls := []*people{gather(t, c, "one", 3)}
	allReceive(t, time.Minute, calls)
	calls = append(calls, gather(t, c, "two", 3))
	allReceive(t, time.Minute, calls)
	before := sendSteadily(t, c, calls)
	on := before["one"].Node
	if on == before["two"].Node {
		t.Fatalf("both rooms are on %s", on)
	}
	said, code := holdfast(t, c, "drain", on)
	t.Log(said)
	if code != 1 || !strings.Contains(said, "one stays: no node has headroom") || !strings.Contains(said, "cannot finish") {
		t.Errorf("drain: exit code %d\n%s", code, said)
	}
	said, code = holdfast(t, c, "undrain", on)
	if code != 0 || !strings.Contains(said, "takes rooms again") {
		t.Errorf("undrain: exit code %d\n%s", code, said)
	}
	allReceive(t, time.Minute, calls)
	if err := c.Kill(t.Context(), on, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	eventually(t, time.Minute, "the room to be said to stay", func() error {
		node, err := c.Node(t.Context(), on)
		if err == nil && node.State != devcluster.StateRunning {
			err = fmt.Errorf("%s is %s", on, node.State)
		}
		if err == nil {
			err = logged(t, c, on, "the drain's deadline has passed")
		}
		return err
	})
	allReceive(t, time.Minute, calls)
	if after := allOnce(t, c, calls)["one"]; after.Epoch != before["one"].Epoch || after.Node != on {
		t.Errorf("without headroom the room went from %+v to %+v", before["one"], after)
	}
	if _, err := c.AddSFU(t.Context()); err != nil {
		t.Fatal(err)
	}
	endsWell(t, c, on)
	allReceive(t, time.Minute, calls)
}

// sendSteadily waits until every room has sent its share for a while: signaling nodes know what it costs then.
func sendSteadily(t *testing.T, c *devcluster.Cluster, calls []*people) (once map[string]heldRoom) {
	t.Helper()
	const share, while = 500_000, 5 * time.Second
	since := time.Now()
	eventually(t, time.Minute, "all rooms send steadily", func() error {
		once = allOnce(t, c, calls)
		for name, room := range once {
			if room.EgressBitsPerSecond < share {
				since = time.Now()
				return fmt.Errorf("room %s sends %d bit/s", name, room.EgressBitsPerSecond)
			}
		}
		if time.Since(since) < while {
			return fmt.Errorf("for %v", time.Since(since))
		}
		return nil
	})
	return once
}

// endsWell waits for the end of a process, which must be of its own will.
func endsWell(t *testing.T, c *devcluster.Cluster, name string) {
	t.Helper()
	eventually(t, drainedWithin, name+" ends", func() error {
		node, err := c.Node(t.Context(), name)
		if err == nil && (node.State != devcluster.StateDead || node.Ended != "exit status 0") {
			err = fmt.Errorf("it is %s (%s)", node.State, node.Ended)
		}
		return err
	})
}

// holdfast runs a verb of the command line as an operator.
func holdfast(t *testing.T, c *devcluster.Cluster, args ...string) (said string, code int) {
	t.Helper()
	binary, err := devcluster.Binary()
	if err != nil {
		t.Fatal(err)
	}
	args = append(args, "--server", c.URL(), "--api-keys", c.Access().Key+":"+c.Access().Secret)
	command := exec.CommandContext(t.Context(), binary, args...) //nolint:gosec // our own binary
	text, err := command.CombinedOutput()
	if command.ProcessState == nil {
		t.Fatalf("holdfast %s: %v", args[0], err)
	}
	return string(text), command.ProcessState.ExitCode()
}
