package signaling

import (
	"slices"
	"testing"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/internal/testkit"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// TestRefreshAndReofferPass: what a client says of slots that show nothing reaches the media node, and
// what the node says of a client's own media reaches the client.
func TestRefreshAndReofferPass(t *testing.T) {
	r := newRig(t)
	n := r.node("sfu-1")
	r.placer.set("lobby", n.pin(firstEpoch))
	ada, _ := r.signalingNode(nil).join("lobby", "Ada")
	ada.say(&wire.Refresh{Mids: wire.List[string]{"7", "8"}})
	testkit.Eventually(t, "the refresh at the node", func() bool { return n.said() == "Ada refreshes [7 8]" })
	n.say("Ada", n.pin(firstEpoch).Fence, &control.PeerEvent{Event: &control.PeerEvent_Reoffer{
		Reoffer: &control.Reoffer{Mids: []string{"1"}, Reason: "silent"},
	}})
	m := hear[*wire.Reoffer](ada)
	if !slices.Equal(m.Mids, []string{"1"}) || m.Reason != "silent" || m.Epoch != firstEpoch {
		t.Errorf("heard %+v", m)
	}
}
