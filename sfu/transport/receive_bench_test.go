package transport

import (
	"bytes"
	"fmt"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/pion/rtp"

	"github.com/holdfast-rtc/holdfast/sfu/egress"
)

// BenchmarkReceive is what it costs to take in one packet of 1,100 bytes from one of 32 clients, who send frames of six. The cost to
// send it is in it. Joined: the kernel hands a frame over in one piece.
func BenchmarkReceive(b *testing.B) {
	for _, joined := range []bool{false, true} {
		b.Run(fmt.Sprintf("joined=%v", joined), func(b *testing.B) { receiveFrames(b, joined) })
	}
}

func receiveFrames(b *testing.B, joined bool) {
	const clients, frames, burst = 32, 150, 6
	transport, w := newReachableTransport(b, runtime.GOMAXPROCS(0))
	senders := make([]*frameSender, clients)
	for i := range senders {
		senders[i] = &frameSender{client: newClient(b, transport, w, fmt.Sprint(i))}
		senders[i].out = egress.New(egress.Options{Gather: true, Segment: joined}, w.sockets[senders[i].client.from]).NewBatch()
	}
	var cpu time.Duration
	received := func() (all int) {
		for _, s := range senders {
			s.client.got.mu.Lock()
			all += s.client.got.streams[1]
			s.client.got.mu.Unlock()
		}
		return all
	}
	b.ResetTimer()
	for range b.N {
		b.StopTimer()
		for _, s := range senders {
			s.seal(b, frames*burst)
		}
		sent, before, used := 0, received(), cpuTime(b)
		b.StartTimer()
		for frame := range frames {
			for _, s := range senders {
				s.send(b, w.at, s.sealed[frame*burst:(frame+1)*burst])
				sent += burst
			}
			for sent-(received()-before) > clients*burst { // or the kernel would drop
				<-time.After(50 * time.Microsecond)
			}
		}
		eventually(b, "all is received", func() bool { return received()-before == sent })
		b.StopTimer()
		cpu += cpuTime(b) - used
		b.StartTimer()
	}
	b.StopTimer()
	packets := float64(b.N * clients * frames * burst)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(cpu.Nanoseconds())/1e3/packets, "cpu-us/packet")
	b.ReportMetric(packets/b.Elapsed().Seconds(), "packets/s")
}

// frameSender sends what was sealed before.
type frameSender struct {
	client   *client
	out      *egress.Batch
	sequence uint16
	sealed   [][]byte
}

func (s *frameSender) seal(b *testing.B, packets int) {
	b.Helper()
	s.sealed = s.sealed[:0]
	packet := &rtp.Packet{Header: rtp.Header{Version: 2, SSRC: 1, PayloadType: 96}, Payload: bytes.Repeat([]byte("x"), 1100-12)}
	for range packets {
		s.sequence++
		packet.SequenceNumber = s.sequence
		plain, err := packet.Marshal()
		if err != nil {
			b.Fatal(err)
		}
		sealed, err := s.client.out.EncryptRTP(nil, plain, nil)
		if err != nil {
			b.Fatal(err)
		}
		s.sealed = append(s.sealed, sealed)
	}
}

func (s *frameSender) send(b *testing.B, to egress.Address, frame [][]byte) {
	b.Helper()
	s.out.Begin()
	for _, packet := range frame {
		n := copy(s.out.Space(len(packet)), packet)
		if err := s.out.Put(n, to, 0); err != nil {
			b.Fatal(err)
		}
	}
	s.out.End()
}

func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
