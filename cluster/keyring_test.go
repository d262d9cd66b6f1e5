package cluster

import (
	"bytes"
	"testing"
)

// TestGossipKeysAreReplacedStepByStep: in the documented order nobody is lost, news goes through after each step, and who has only the
// key that was dropped is not heard.
func TestGossipKeysAreReplacedStepByStep(t *testing.T) {
	n := newNetwork(t)
	next := bytes.Repeat([]byte{9}, keyBytes)
	signaling, a, b := n.start("signaling-1"), n.start("sfu-1"), n.start("sfu-2")
	all := []*process{signaling, a, b}
	n.together(all...)
	seq := uint64(0)
	for _, keys := range [][][]byte{{n.key, next}, {next, n.key}, {next}} {
		for _, p := range all {
			if err := p.SetKeys(keys); err != nil {
				t.Fatal(err)
			}
			seq++
			a.SetLoad(Load{Seq: seq})
			for _, other := range all {
				other.await("the news", func(v *View) bool { return v.Nodes["sfu-1"].Load.Seq == seq })
			}
		}
	}
	n.together(all...)
	for _, p := range all {
		if len(p.View().Gone) != 0 {
			t.Errorf("%s has lost %v", p.config.Node.ID, p.View().Gone)
		}
	}
	if err := signaling.SetKeys(nil); err == nil {
		t.Error("no key is taken")
	}
	if err := signaling.SetKeys([][]byte{[]byte("short")}); err == nil {
		t.Error("a key of the wrong length is taken")
	}
	config := n.config("sfu-old") // It has the key that was dropped.
	config.Solo = true
	old := start(t, config)
	newcomer := n.config("sfu-new")
	newcomer.Keys = [][]byte{next}
	p := start(t, newcomer)
	signaling.await("the newcomer", func(v *View) bool { return v.Nodes["sfu-new"].Boot == p.config.Node.Boot })
	if len(old.View().Nodes) != 1 || signaling.View().Nodes["sfu-old"].Boot != "" {
		t.Errorf("who has the dropped key sees %v", old.View().Nodes)
	}
}
