package cluster

import (
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/memberlist"
)

// TestAShortCutHealsSoon cuts a member off for longer than gossip of its death lasts, and for less than it needs to give up the others.
// So it does not know that it is held dead, and the others hear its pings only.
func TestAShortCutHealsSoon(t *testing.T) {
	t.Parallel()
	n := newNetwork(t)
	config := n.config("sfu-2") // It is the seed, so it joins nobody again.
	config.Haste = 0.4          // So that it accuses nobody meanwhile.
	var cut atomic.Bool
	c, err := New(config, testLog(t, "sfu-2"))
	if err != nil {
		t.Fatal(err)
	}
	c.wrap = func(inner memberlist.NodeAwareTransport) memberlist.Transport { return newCutTransport(inner, &cut) }
	victim := run(t, c)
	n.seed = victim.LocalAddr()
	a, b := n.start("signaling-1"), n.start("sfu-1")
	n.together(a, b, victim)
	<-time.After(time.Second) // Everybody is done with joining; who is not asks again, and so heals the cut by itself.

	cut.Store(true)
	for _, p := range []*process{a, b} {
		p.await("the death", func(v *View) bool { return v.Nodes["sfu-2"].Boot == "" })
	}
	<-time.After(time.Second) // The gossip of the death ends.
	cut.Store(false)
	mended := time.Now()
	for _, p := range []*process{a, b} {
		p.await("the return", func(v *View) bool { return v.Nodes["sfu-2"].Boot == config.Node.Boot })
	}
	if took := time.Since(mended); took > pushPullInterval/2 {
		t.Errorf("the member was back after %v", took)
	}
}

// cutTransport can be cut off from everybody.
type cutTransport struct {
	memberlist.NodeAwareTransport

	cut     *atomic.Bool
	packets chan *memberlist.Packet
	streams chan net.Conn
	stop    chan struct{}
	stopped sync.Once
	pump    sync.WaitGroup
}

var errCut = errors.New("cut off")

func newCutTransport(inner memberlist.NodeAwareTransport, cut *atomic.Bool) *cutTransport {
	c := &cutTransport{NodeAwareTransport: inner, cut: cut, packets: make(chan *memberlist.Packet), streams: make(chan net.Conn), stop: make(chan struct{})}
	c.pump.Go(c.admit)
	return c
}

func (c *cutTransport) admit() {
	for {
		select {
		case packet := <-c.NodeAwareTransport.PacketCh():
			if c.cut.Load() {
				continue
			}
			select {
			case c.packets <- packet:
			case <-c.stop:
				return
			}
		case conn := <-c.NodeAwareTransport.StreamCh():
			if c.cut.Load() {
				conn.Close()
				continue
			}
			select {
			case c.streams <- conn:
			case <-c.stop:
				conn.Close()
				return
			}
		case <-c.stop:
			return
		}
	}
}

func (c *cutTransport) PacketCh() <-chan *memberlist.Packet { return c.packets }

func (c *cutTransport) StreamCh() <-chan net.Conn { return c.streams }

func (c *cutTransport) WriteToAddress(b []byte, to memberlist.Address) (time.Time, error) {
	if c.cut.Load() {
		return time.Now(), nil
	}
	return c.NodeAwareTransport.WriteToAddress(b, to)
}

func (c *cutTransport) DialAddressTimeout(to memberlist.Address, limit time.Duration) (net.Conn, error) {
	if c.cut.Load() {
		return nil, errCut
	}
	return c.NodeAwareTransport.DialAddressTimeout(to, limit)
}

func (c *cutTransport) Shutdown() error {
	err := c.NodeAwareTransport.Shutdown()
	c.stopped.Do(func() { close(c.stop) })
	c.pump.Wait()
	return err
}
