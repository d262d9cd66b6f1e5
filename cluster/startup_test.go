package cluster

import (
	"errors"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/pin"
)

// TestAStartingNodeHearsOfItsNewerFormerLife, whether that is believed alive, is dead, or has left. The second attempt, above it, is used
// at once. An older former life, and a newer namesake that comes later, end nobody.
func TestAStartingNodeHearsOfItsNewerFormerLife(t *testing.T) {
	for name, row := range map[string]struct {
		former func(*process)
		ahead  bool // the clock of the former life
	}{
		"believed alive":      {func(*process) {}, true},
		"dead":                {(*process).kill, true},
		"left":                {(*process).leave, true},
		"older, and alive":    {func(*process) {}, false},
		"older, and departed": {(*process).leave, false},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNetwork(t)
			other := n.start("signaling-1")
			config := n.config("sfu-1")
			boot := func(at int) pin.BootID { return pin.NewBootID(time.UnixMilli(int64(at))) }
			if config.Node.Boot = boot(1000); row.ahead {
				config.Node.Boot = boot(5000)
			}
			former := start(t, config)
			n.together(other, former)
			row.former(former)

			config.Node.Boot, config.RefuseOlderBoot = boot(2000), true
			second, err := New(config, testLog(t, "sfu-1"))
			if err != nil {
				t.Fatal(err)
			}
			running := run(t, second)
			if row.ahead {
				older, ok := errors.AsType[*OlderBootError](<-running.ended)
				if !ok || older.Newer != former.config.Node.Boot {
					t.Fatalf("Run = %v, want the boot of the former life", older)
				}
				config.Node.Boot = boot(5001)
				running = start(t, config)
			}
			other.await("the new life", func(v *View) bool { return v.Nodes["sfu-1"].Boot == config.Node.Boot })

			config.Node.Boot = boot(9000)
			namesake := start(t, config)
			other.await("the namesake", func(v *View) bool { return v.Nodes["sfu-1"].Boot == config.Node.Boot })
			running.await("the namesake", func(v *View) bool { return v.Gone[config.Node.Boot] != "" || v.Settled })
			select {
			case err := <-running.ended:
				t.Errorf("the namesake ended the node: %v", err)
			default:
			}
			namesake.leave()
		})
	}
}

// TestOnlyTheFirstMemberIsAsked plays what the loop hears.
func TestOnlyTheFirstMemberIsAsked(t *testing.T) {
	self := sfuNode("sfu-1", 5)
	hello := func(from Node) message { return message{kind: kindHello, from: from} }
	s := startup{self: self}
	for _, heard := range []Node{sfuNode("sfu-1", 4), sfuNode("sfu-2", 9), self, sfuNode("sfu-1", 8), sfuNode("sfu-1", 7)} {
		s.hear(heard)
	}
	if _, found := s.met([]message{hello(self)}); found {
		t.Error("the node met itself")
	}
	if _, found := s.met(nil); found {
		t.Error("an empty state is nobody's")
	}
	if newer, found := s.met([]message{hello(sfuNode("sfu-2", 1))}); !found || newer != sfuNode("sfu-1", 8).Boot {
		t.Errorf("heard of %q, %t", newer, found)
	}
	if _, found := s.met([]message{hello(sfuNode("sfu-3", 1))}); found {
		t.Error("the second member was asked too")
	}
}
