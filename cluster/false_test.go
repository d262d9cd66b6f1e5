package cluster

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-rtc/holdfast/pin"
)

// TestFalseDeathsHeal plays the ways in which a boot that lives is taken for dead, as far as they are not gossip's own: each ends
// with the boot in use, and no boot is in use that does not live.
func TestFalseDeathsHeal(t *testing.T) {
	old, restarted := sfuNode("a", 9), sfuNode("a", 1) // The clock was set back in between.
	for name, c := range map[string]struct {
		play func(m *members)
		want Node
	}{
		"a suspicion taken back just before it is confirmed": {func(m *members) {
			m.join(old)
			m.die(old)
			m.join(old)
			m.confirmDead(old, "silence")
		}, old},
		"a proof that was wrong": {func(m *members) {
			m.join(old)
			m.reportDead(old, "proof")
			m.remind()
			m.remind()
		}, old},
		"a proof that was right": {func(m *members) {
			m.join(old)
			m.reportDead(old, "proof")
			m.remind()
			m.die(old)
			m.remind()
		}, Node{}},
		"a restart with a lower boot id": {func(m *members) {
			m.join(old)
			m.join(restarted)
			m.die(old) // not confirmed yet, with confirmDeaths
			m.confirmDead(old, "silence")
			m.remind()
			m.remind()
		}, restarted},
		"a restart with a lower boot id, after a proof": {func(m *members) {
			m.join(old)
			m.reportDead(old, "proof")
			m.join(restarted)
			m.remind()
			m.remind()
		}, restarted},
		"a restart with a lower boot id, and a goodbye": {func(m *members) {
			m.join(old)
			m.join(restarted)
			m.leave(old, 0)
			m.remind()
			m.remind()
		}, restarted},
		"the boot before it is dead, too, and gossip finds out later": {func(m *members) {
			m.join(old)
			m.join(restarted) // It is what it seems here: the older one.
			m.reportDead(old, "proof")
			m.remind()
			if node := m.live[old.Name()]; node.Boot != "" {
				t.Errorf("%q is used at once", node.Boot)
			}
			m.die(old)
			m.die(restarted)
			m.remind()
			m.remind()
		}, Node{}},
		"the boot before it is thawed": {func(m *members) {
			m.join(old)
			m.reportDead(old, "proof")
			m.die(old)
			m.join(restarted)
			m.join(old)
			m.remind()
			m.remind()
		}, restarted},
	} {
		for _, confirmDeaths := range []bool{true, false} {
			m := observer()
			m.confirmDeaths = confirmDeaths
			c.play(m)
			view := m.view()
			if got := view.Nodes["a"]; got != c.want || (got.Boot != "" && view.Gone[got.Boot] != "") {
				t.Errorf("%s (confirmDeaths %t): in use is %q, want %q; gone: %v", name, confirmDeaths, got.Boot, c.want.Boot, view.Gone)
			}
		}
	}
}

// TestOneHostOneName: by default a process is named after its host, whatever its role.
func TestOneHostOneName(t *testing.T) {
	n := newNetwork(t)
	config := n.config("signaling-host")
	config.Node.ID = "host"
	signaling := start(t, config)
	n.seed = signaling.LocalAddr()
	media := n.start("host")
	n.together(media)
	signaling.await("both", func(v *View) bool {
		return v.Nodes["host"].Boot == media.config.Node.Boot && v.Signaling["host"].Boot == config.Node.Boot && len(v.Gone) == 0
	})
	media.await("both", func(v *View) bool {
		return v.Nodes["host"].Boot == media.config.Node.Boot && v.Signaling["host"].Boot == config.Node.Boot && len(v.Gone) == 0
	})
}

// TestDeathsTravelWithTheState: who was not there hears of a death, and of a leave, for as long as a pin can name the boot.
func TestDeathsTravelWithTheState(t *testing.T) {
	n := newNetwork(t)
	first, victim, leaver := n.start("signaling-1"), n.start("sfu-1"), n.start("sfu-2")
	n.together(first, victim, leaver)
	victim.kill()
	first.await("the death", func(v *View) bool { return v.Gone[victim.config.Node.Boot] == DepartureDead })
	leaver.leave()
	first.await("the leave", func(v *View) bool { return v.Gone[leaver.config.Node.Boot] == DepartureLeft })
	late := n.start("signaling-2")
	late.await("both departures", func(v *View) bool {
		return v.Gone[victim.config.Node.Boot] == DepartureDead && v.Gone[leaver.config.Node.Boot] == DepartureLeft
	})
	if got := late.events("sfu-1"); len(got) != 0 {
		t.Errorf("events of a death before its time: %q", got)
	}
}

// TestHeardDeathsAreOnlyForThoseWhoKnowNothing: a boot that is live here stays, and one that joins later does, too.
func TestHeardDeathsAreOnlyForThoseWhoKnowNothing(t *testing.T) {
	m := observer()
	m.confirmDeaths = true
	a, b := sfuNode("a", 1), sfuNode("b", 2)
	m.join(a)
	m.heardDead(a, 0)
	m.die(a) // suspected: its heartbeats decide
	m.heardDead(a, 0)
	m.heardDead(m.self, 0)
	m.heardDead(b, time.Minute)
	if view := m.view(); !view.Nodes["a"].Suspect || len(view.Gone) != 1 || view.Gone[b.Boot] != DepartureDead {
		t.Fatalf("after word of deaths: %+v", view)
	}
	m.join(b)
	if view := m.view(); view.Nodes["b"].Boot != b.Boot || len(view.Gone) != 0 {
		t.Fatalf("after the boot joined: %+v", view)
	}
}

// TestGoneAge: two members that tell each other forget together.
func TestGoneAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var both [2]*Cluster
		for i := range both {
			config := validConfig()
			config.Node = Node{ID: "signaling", Boot: pin.BootID(fmt.Sprint("boot-", i)), Role: RoleSignaling}
			var err error
			if both[i], err = New(config, quiet()); err != nil {
				t.Fatal(err)
			}
		}
		tell := func(from, to *Cluster) {
			from.publish(from.members.remind())
			delegate{to}.MergeRemoteState(delegate{from}.LocalState(false), false)
			(<-to.mailbox)()
			to.publish(nil)
		}
		both[0].publish(both[0].members.reportDead(sfuNode("a", 1), "proof"))
		both[0].members.leave(sfuNode("b", 2), 0)
		<-time.After(goneFor - time.Minute)
		tell(both[0], both[1])
		if got := len(both[1].View().Gone); got != 2 {
			t.Fatalf("%d departures heard of, want 2", got)
		}
		<-time.After(time.Minute)
		tell(both[0], both[1])
		tell(both[1], both[0])
		tell(both[0], both[1])
		if a, b := both[0].View().Gone, both[1].View().Gone; len(a)+len(b) != 0 {
			t.Fatalf("still remembered: %v, %v", a, b)
		}
	})
}

func TestAbsent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := observer()
		live, gone, absent := sfuNode("a", 1), sfuNode("b", 2), sfuNode("c", 3)
		m.join(live)
		m.reportDead(gone, "proof")
		<-time.After(absentFor)
		if m.view().Absent(absent.ID, absent.Boot) {
			t.Error("a view that is not settled knows of an absence")
		}
		m.settledAt = time.Now()
		if m.view().Absent(absent.ID, absent.Boot) {
			t.Error("a view that has just settled knows of an absence")
		}
		<-time.After(absentFor)
		view := m.view()
		if !view.Absent(absent.ID, absent.Boot) || !view.Absent(live.ID, absent.Boot) {
			t.Error("an unknown boot is not absent")
		}
		if view.Absent(live.ID, live.Boot) || view.Absent(gone.ID, gone.Boot) {
			t.Error("a known boot is absent")
		}
	})
}

// TestLoadsShareAView: a thousand nodes report twice a second each.
func TestLoadsShareAView(t *testing.T) {
	n := newNetwork(t)
	signaling := n.start("signaling-1")
	nodes := make([]Node, 200)
	for i := range nodes {
		nodes[i] = sfuNode(fmt.Sprint("sfu-", i), 1000+i)
		signaling.post(func() { signaling.publish(signaling.members.join(nodes[i])) })
	}
	signaling.await("all", func(v *View) bool { return len(v.Nodes) == len(nodes) })
	before := signaling.View().Version
	began := time.Now()
	for i, node := range nodes {
		signaling.post(func() { signaling.handle(message{kind: kindLoad, from: node, load: Load{Seq: 1, Rooms: uint32(i)}}) })
	}
	signaling.await("all loads", func(v *View) bool {
		for _, node := range v.Nodes {
			if node.Load.Seq == 0 {
				return false
			}
		}
		return true
	})
	if views, most := signaling.View().Version-before, 3+uint64(time.Since(began)/publishAfter); views > most {
		t.Errorf("%d views for %d loads, want at most %d", views, len(nodes), most)
	}
}

// TestBlockedDatagrams loses every datagram of gossip: nobody is given up, it is said what that costs, and news gets through.
func TestBlockedDatagrams(t *testing.T) {
	n := newNetwork(t)
	blocked := func(name string) Config {
		config := n.config(name)
		config.LosePercent, config.ConfirmDeaths = 100, true
		return config
	}
	warned := make(chan struct{})
	signaling := startLogging(t, blocked("signaling-1"), slog.New(&listener{Handler: testLog(t, "signaling-1").Handler(), heard: sync.OnceFunc(func() { close(warned) })}))
	n.seed = signaling.LocalAddr()
	media := start(t, blocked("sfu-1"))
	n.together(signaling, media)
	select {
	case <-warned:
	case <-time.After(patience):
		t.Fatal("nobody said that datagrams do not get through")
	}
	const reports = 12 // A state exchange of every pushPullInterval would take a minute for them on average.
	began := time.Now()
	for seq := range uint64(reports) {
		media.SetLoad(Load{Seq: seq + 1})
		signaling.await("the load", func(v *View) bool { return v.Nodes["sfu-1"].Load.Seq == seq+1 })
	}
	if took := time.Since(began); took > 2*pushPullInterval {
		t.Errorf("%d reports took %v", reports, took)
	}
	if got := signaling.events("sfu-1"); !slices.Equal(got, []string{"joined (gossip)"}) {
		t.Errorf("heard of sfu-1: %q", got)
	}
}

// listener waits for the warning that datagrams are blocked.
type listener struct {
	slog.Handler

	heard func()
}

func (l *listener) Handle(ctx context.Context, r slog.Record) error {
	if r.Level == slog.LevelWarn && strings.Contains(r.Message, "is UDP blocked") {
		l.heard()
	}
	return l.Handler.Handle(ctx, r)
}
