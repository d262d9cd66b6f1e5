//go:build long

package devcluster

import (
	"math/rand/v2"
	"net"
	"sync"
	"syscall"
	"testing"
)

// TestAKilledNodeComesBackFiftyTimes while other sockets take most of the ports that the kernel gives to anybody, and change them all the time.
func TestAKilledNodeComesBackFiftyTimes(t *testing.T) {
	c := start(t, Options{})
	stop, eating := make(chan struct{}), sync.WaitGroup{}
	t.Cleanup(func() { close(stop); eating.Wait() })
	eating.Go(func() { takePorts(stop) })
	for i := range 50 {
		if err := c.Kill(t.Context(), "sfu-2", syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if _, err := c.StartNode(t.Context(), "sfu-2"); err != nil {
			t.Fatalf("start %d: %v", i+1, err)
		}
	}
}

func takePorts(stop <-chan struct{}) {
	const most = 15_000
	var held []net.PacketConn
	defer func() {
		for _, conn := range held {
			conn.Close()
		}
	}()
	for {
		select {
		case <-stop:
			return
		default:
		}
		conn, err := net.ListenPacket("udp", "127.0.0.1:0")
		if err == nil {
			held = append(held, conn)
		}
		if err != nil || len(held) > most {
			i := rand.IntN(len(held))
			held[i].Close()
			held[i] = held[len(held)-1]
			held = held[:len(held)-1]
		}
	}
}
