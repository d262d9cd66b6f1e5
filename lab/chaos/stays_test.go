package chaos

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
	"github.com/holdfast-rtc/holdfast/lab/hosts"
)

// lossyWorld is a world in which everything went well while sfu-1 lost packets.
func lossyWorld() *World {
	w := missed()
	w.Expect = Expect{Stays: true}
	w.Faults = []Fault{{Node: "sfu-1", Role: devcluster.RoleSFU, What: "lossy", At: struckAt, Seen: true}}
	return w
}

// TestWhatMustNotMove sees each verdict of a lossy world fail.
func TestWhatMustNotMove(t *testing.T) {
	for _, v := range Judge(lossyWorld()) {
		if v.Outcome != Kept {
			t.Errorf("%s is %s: %v", v.Name, v.Outcome, v.Faults)
		}
	}
	fatal := killed()
	fatal.Log = []Entry{{Msg: "node down", Node: "sfu-1", Time: healedAt}}
	if v := NoFalseDeath(fatal); v.Outcome != Kept {
		t.Errorf("the death of a killed node: %+v", v)
	}
	fatal.Log[0].Node = "sfu-2"
	if v := NoFalseDeath(fatal); v.Outcome != Broken {
		t.Errorf("the death of another node: %+v", v)
	}
	for name, test := range map[string]struct {
		verdict string
		spoil   func(*World)
		want    Outcome
	}{
		"the node's own room moved": {"surgical", func(w *World) { w.After = look(held("a", "sfu-2", 11), held("b", "sfu-3", 20)) }, Broken},
		"another room moved":        {"surgical", func(w *World) { w.After = look(held("a", "sfu-1", 10), held("b", "sfu-2", 21)) }, Broken},
		"a client was told to move": {"moved once", func(w *World) { w.Clients[0].Epochs = []uint64{11} }, Broken},
		"a stream stopped":          {"media goes on", func(w *World) { w.Pauses[0].Longest = 2 * longestPause }, Broken},
		"somebody connected anew":   {"media goes on", func(w *World) { w.Clients[0].Moments = []Moment{{Step: stepOffer, At: healedAt}} }, Broken},
		"nobody looked":             {"media goes on", func(w *World) { w.Pauses = nil }, Unchecked},
		"no packet was lost":        {"the fault happened", func(w *World) { w.Faults[0].Seen = false }, Broken},
	} {
		w := lossyWorld()
		test.spoil(w)
		verdicts := Judge(w)
		i := slices.IndexFunc(verdicts, func(v Verdict) bool { return v.Name == test.verdict })
		if i < 0 || verdicts[i].Outcome != test.want {
			t.Errorf("%s: %q is not %s: %+v", name, test.verdict, test.want, verdicts)
		}
	}
}

// TestMediaGoesOnUntilItMoves: who has to move makes a new connection, and misses nothing before that.
func TestMediaGoesOnUntilItMoves(t *testing.T) {
	w := killed()
	w.Expect.Smooth = true
	w.Clients[0].Moments = []Moment{{Step: stepOffer, At: healedAt}}
	w.Pauses = []Pause{{Room: "a", Client: "ann", From: "art", Source: "camera", Longest: time.Second}}
	if v := MediaGoesOn(w); v.Outcome != Kept {
		t.Errorf("%+v", v)
	}
	w.Pauses[0].Longest = 2 * longestPause
	if v := MediaGoesOn(w); v.Outcome != Broken {
		t.Errorf("a pause: %+v", v)
	}
}

// cables are hurt on paper.
type cables struct {
	hurt map[string]hosts.Fault
	gone uint64
}

func (c *cables) Hurt(node string, f hosts.Fault) error {
	if f.Delay > 0 {
		return errors.New("no relay")
	}
	c.hurt[node] = f
	return nil
}

func (c *cables) Mend(node string) (uint64, error) {
	delete(c.hurt, node)
	return c.gone, nil
}

// TestACableIsMended whatever becomes of the run, and only packets that were hurt make a fault.
func TestACableIsMended(t *testing.T) {
	node := devcluster.Node{Name: "sfu-1", Role: devcluster.RoleSFU}
	for _, packets := range []uint64{0, 7} {
		network := &cables{hurt: make(map[string]hosts.Fault), gone: packets}
		o := defaults()
		o.Network = network
		c, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		w := &World{}
		mend, err := c.onCable(w, node, "cut off", hosts.Fault{From: []string{"store"}})
		if err != nil || len(network.hurt["sfu-1"].From) != 1 || w.Faults[0].Seen {
			t.Fatalf("cut: %v, %+v, %+v", err, network.hurt, w.Faults)
		}
		ended, end := context.WithCancel(t.Context())
		end()
		if err := mend(ended); err != nil || len(network.hurt) != 0 || w.Faults[0].Seen != (packets > 0) {
			t.Errorf("mended after %d packets: %v, %+v, %+v", packets, err, network.hurt, w.Faults)
		}
		if _, err := c.onCable(w, node, "slow", hosts.Fault{Delay: time.Second}); err == nil || len(w.Faults) != 1 {
			t.Errorf("a cable that could not be hurt: %v, %+v", err, w.Faults)
		}
	}
}
