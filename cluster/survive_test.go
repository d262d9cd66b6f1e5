package cluster

import (
	"testing"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/holdfast-rtc/holdfast/internal/panics"
	"github.com/holdfast-rtc/holdfast/internal/testkit"
)

// TestGossipThatBreaksItsReadingIsDropped: memberlist calls us on its goroutines, some of them under its locks.
func TestGossipThatBreaksItsReadingIsDropped(t *testing.T) {
	for name, call := range map[string]func(delegate){
		"message":  func(d delegate) { d.NotifyMsg([]byte("nonsense")) },
		"exchange": func(d delegate) { d.MergeRemoteState([]byte{200}, false) },
		"join":     func(d delegate) { d.NotifyJoin(&memberlist.Node{Name: "nonsense"}) },
		"update":   func(d delegate) { d.NotifyUpdate(&memberlist.Node{Name: "nonsense"}) },
	} {
		t.Run(name, func(t *testing.T) {
			config := validConfig()
			config.Panics = panics.New()
			c, err := New(config, testkit.Landmine(testkit.Quiet(), "gossiped message dropped", "state exchange dropped", "member ignored"))
			if err != nil {
				t.Fatal(err)
			}
			call(delegate{c})
			if n := config.Panics.Count(); n != 1 {
				t.Errorf("%d panics are counted, want 1", n)
			}
		})
	}
}

// TestAMemberThatBreaksTheLoopIsLeftOut: the loop goes on, with what others gossip and with what this process does.
func TestAMemberThatBreaksTheLoopIsLeftOut(t *testing.T) {
	n := newNetwork(t)
	config := n.config("sfu-1")
	config.Panics = panics.New()
	struck := startLogging(t, config, testkit.Landmine(testLog(t, "sfu-1"), "member joined"))
	n.seed = struck.LocalAddr()
	other := n.start("sfu-2")
	testkit.Eventually(t, "the panic is counted", func() bool { return config.Panics.Count() > 0 })
	other.SetLoad(Load{Seq: 1, Rooms: 3})
	struck.await("the load of sfu-2", func(v *View) bool { return v.Nodes["sfu-2"].Load.Rooms == 3 })
	struck.SetLoad(Load{Seq: 1, Rooms: 4})
	other.await("the load of sfu-1", func(v *View) bool { return v.Nodes["sfu-1"].Load.Rooms == 4 })
	reported := make(chan struct{})
	go func() {
		defer close(reported)
		struck.ReportDead("sfu-3", n.config("sfu-3").Node.Boot, "of a test")
	}()
	select {
	case <-reported:
	case <-time.After(10 * time.Second):
		t.Error("the loop does not answer")
	}
}
