package sfu

import (
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"testing"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/sfu/connection"
	"github.com/holdfast-rtc/holdfast/sfu/offer"
)

// TestWhatAnUnconnectedConnectionCosts: somebody with a place can have a connection with as many slots as there may be, and never connect it.
func TestWhatAnUnconnectedConnectionCosts(t *testing.T) {
	const connections, most = 50, 256 << 10
	s := newStageWith(t, "one", slog.New(slog.DiscardHandler))
	s.attach("room", "alice", 1) // The node is running when somebody could attach.
	head, video, _ := strings.Cut(plainOffer, "m=video")
	var text strings.Builder
	text.WriteString(head)
	for i := range s.node.cfg.Limits.SlotsPerPeer {
		text.WriteString(strings.Replace("m=video"+video, "a=mid:1", fmt.Sprint("a=mid:s", i), 1))
	}
	o, err := offer.Read(text.String(), offerLimits(s.node.cfg.Limits))
	if err != nil {
		t.Fatal(err)
	}
	cfg := s.looseConfig()
	open := func(n int) {
		for range n {
			c, err := connection.Open(s.node.transport, o, cfg)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(c.Close)
			if _, err := c.Answer(&control.Offer{Id: "1", Sdp: text.String()}, o); err != nil {
				t.Fatal(err)
			}
		}
		cfg.Room.States() // All slots are taken in.
	}
	heap := func() uint64 {
		runtime.GC()
		runtime.GC() // Pools keep what is in them for one collection more.
		var memory runtime.MemStats
		runtime.ReadMemStats(&memory)
		return memory.HeapAlloc
	}
	open(1) // Everything that is made once is made before.
	before := heap()
	open(connections)
	each := (heap() - before) / connections
	t.Logf("a connection with %d slots costs %d KiB before it is connected", s.node.cfg.Limits.SlotsPerPeer, each>>10)
	if each > most {
		t.Errorf("a connection with %d slots costs %d KiB, want %d at most", s.node.cfg.Limits.SlotsPerPeer, each>>10, most>>10)
	}
	runtime.KeepAlive(cfg)
}
