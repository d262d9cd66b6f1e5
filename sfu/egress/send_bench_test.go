package egress

import (
	"net"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/testkit"
)

// BenchmarkSend is what it costs to send one packet of 1,100 bytes, in frames of six to each of 32 clients, by UDP and by TCP. What it costs the
// clients to take it is in it.
func BenchmarkSend(b *testing.B) {
	b.Run("UDP", func(b *testing.B) { sendFrames(b, byUDP) })
	b.Run("TCP", func(b *testing.B) { sendFrames(b, byTCP) })
}

const sendTo, sendBurst, sendRounds = 32, 6, 200

func sendFrames(b *testing.B, dial func(*testing.B, *tcpNode) Address) {
	n := listenTCP(b, asIs)
	var clients []Address
	for range sendTo {
		clients = append(clients, dial(b, n))
	}
	batch, packet := n.NewBatch(), make([]byte, 1100)
	before, used, rounds := n.Stats().Packets, processTime(b), uint32(0)
	b.ResetTimer()
	for range b.N * sendRounds {
		rounds++
		batch.Begin()
		for _, to := range clients {
			for range sendBurst {
				copy(batch.Space(len(packet)), packet)
				if err := batch.Put(len(packet), to, FrameOf(1, rounds)); err != nil {
					b.Fatal(err)
				}
			}
		}
		batch.End()
		for sent := uint64(rounds) * sendTo * sendBurst; n.Stats().Packets-before+2*sendTo*sendBurst < sent; {
			<-time.After(50 * time.Microsecond) // Nothing is left out.
		}
	}
	sent := uint64(rounds) * sendTo * sendBurst
	testkit.Eventually(b, "all is sent", func() bool { return n.Stats().Packets-before == sent })
	b.StopTimer()
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64((processTime(b)-used).Nanoseconds())/1e3/float64(sent), "cpu-us/packet")
}

func byUDP(b *testing.B, _ *tcpNode) Address {
	conn := listen(b, "udp4")
	go func() { _ = receive(conn, func([]byte, netip.AddrPort) {}) }()
	return to(conn)
}

func byTCP(b *testing.B, n *tcpNode) Address {
	conn, at := n.dialKnown(b)
	go drain(conn)
	return at
}

func drain(conn *net.TCPConn) {
	for room := make([]byte, 1<<16); ; {
		if _, err := conn.Read(room); err != nil {
			return
		}
	}
}

func processTime(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
