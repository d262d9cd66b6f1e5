package signaling

import (
	"strings"
	"testing"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/internal/testkit"
	"github.com/holdfast-rtc/holdfast/signaling/limits"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

func TestChatGoesToTheNodeAndBackWithinItsPace(t *testing.T) {
	r := newRig(t)
	n := r.node("sfu-1")
	r.placer.set("lobby", n.pin(firstEpoch))
	ada, _ := r.signalingNode(nil).join("lobby", "Ada")
	ada.say(&wire.Say{Text: "<b>hello</b>", ID: "c-1"})
	testkit.Eventually(t, "word of the line", func() bool { return n.said() == `Ada says "<b>hello</b>" c-1` })
	n.say("Ada", n.pin(firstEpoch).Fence, &control.PeerEvent{Event: &control.PeerEvent_Chat{Chat: &control.Chat{
		Peer: "p-9", Name: "Grace", Text: "hello", AtUnixMs: 12, Seq: 4, Id: "c-7",
	}}})
	want := wire.Chat{Peer: "p-9", Name: "Grace", Text: "hello", ID: "c-7", At: 12, Seq: 4, Epoch: firstEpoch}
	if line := hear[*wire.Chat](ada); *line != want {
		t.Fatalf("heard %+v, want %+v", line, want)
	}
	for range 4 * limits.ChatBurst {
		ada.say(&wire.Say{Text: "spam"})
	}
	if fault := hear[*wire.Error](ada); fault.Code != wire.CodeTooManyMessages {
		t.Fatalf("heard %+v", fault)
	}
	if lines := strings.Count(n.said(), "spam"); lines > 2*limits.ChatBurst {
		t.Fatalf("the node heard %d of %d lines at once", lines, 4*limits.ChatBurst)
	}
}
