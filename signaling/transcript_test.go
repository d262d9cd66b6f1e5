package signaling

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// TestTranscriptOfAFailover plays a call whose node dies and whose signaling node dies, and
// compares what one client said and heard with a golden text. HOLDFAST_GOLDEN=1 writes it.
func TestTranscriptOfAFailover(t *testing.T) {
	r := newRig(t)
	one, two := r.node("sfu-1"), r.node("sfu-2")
	r.placer.set("lobby", one.pin(firstEpoch))
	first, second := r.signalingNode(nil), r.signalingNode(nil)
	var script strings.Builder
	note := func(format string, args ...any) { fmt.Fprintf(&script, format+"\n", args...) }
	say := func(c *client, m wire.Message) {
		note("client  %s", told(m))
		c.say(m)
	}
	offer := func(c *client, id string, fresh bool) {
		say(c, &wire.Offer{ID: id, SDP: "offer " + id, Fresh: fresh, Senders: wire.List[wire.Sender]{}})
	}
	heard := func(c *client) wire.Message {
		m := c.next()
		note("server  %s", told(m))
		return m
	}

	note("# A client joins and offers.")
	ada := first.dial()
	say(ada, &wire.Join{Token: r.token("lobby", "Ada")})
	joined, ok := heard(ada).(*wire.Joined)
	if !ok {
		t.Fatal(script.String())
	}
	offer(ada, "o-1", true)
	heard(ada)

	note("# Its node dies. It keeps its connection and offers to the new node.")
	one.stop()
	r.placer.set("lobby", two.pin(firstEpoch+1))
	first.Hub().Moved(context.Background(), "lobby", two.pin(firstEpoch+1))
	heard(ada)
	offer(ada, "o-2", false)
	heard(ada)
	say(ada, &wire.Migrated{Epoch: firstEpoch + 1, Attempt: 1, How: wire.HowRestart, GapMs: 212})

	note("# Its signaling node stops. It resumes on the other one; its media never stopped.")
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		first.stop()
	}()
	code, _ := ada.closed()
	note("closed  %d", code)
	<-stopped
	ada = second.dial()
	say(ada, &wire.Resume{Resume: joined.Resume, Attempt: 2, Epoch: firstEpoch + 1, Seq: 1})
	heard(ada)

	note("# It leaves.")
	say(ada, &wire.Leave{})
	code, _ = ada.closed()
	note("closed  %d", code)

	const golden = "testdata/failover.txt"
	got := strings.ReplaceAll(script.String(), string(joined.Peer), "p-ada")
	if os.Getenv("HOLDFAST_GOLDEN") != "" {
		if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the transcript is\n%s\nwant\n%s", got, want)
	}
}

// told is a message as JSON, its tokens left out, for they differ every time.
func told(m wire.Message) string {
	switch full := m.(type) {
	case *wire.Join:
		short := *full
		short.Token, m = "(token)", &short
	case *wire.Resume:
		short := *full
		short.Resume, m = "(token)", &short
	case *wire.Joined:
		short := *full
		short.Resume, m = "(token)", &short
	case *wire.Resumed:
		short := *full
		short.Resume, m = "(token)", &short
	}
	frame, err := wire.Encode(m)
	if err != nil {
		return err.Error()
	}
	return string(frame)
}
