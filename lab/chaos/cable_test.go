package chaos

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
	"github.com/holdfast-rtc/holdfast/lab/hosts"
)

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
