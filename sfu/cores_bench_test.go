package sfu

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pion/dtls/v3"
	"github.com/pion/rtp"

	"github.com/holdfast-rtc/holdfast/sfu/egress"
	"github.com/holdfast-rtc/holdfast/sfu/forward"
)

// BenchmarkCores is how many packets a second are forwarded when there is always more; compare -cpu 1 with -cpu 2. The subscribers are
// stopped once they are connected: their sockets fill up and the kernel drops what follows, so that they take nothing of the cores. What
// a machine with nothing else to do would forward follows from what a packet costs and how many cores were wanted at a time.
func BenchmarkCores(b *testing.B) {
	for _, c := range []struct{ rooms, subscribers int }{{1, 8 * shardPeers}, {32, 8}} {
		b.Run(fmt.Sprintf("rooms=%d", c.rooms), func(b *testing.B) {
			s := newStage(b, "one")
			s.attach("room", "alice", 1) // The node is running when somebody could attach.
			r := startReceiver(b)
			rooms := make([]*floodedRoom, c.rooms)
			for i := range rooms {
				rooms[i] = s.flooded(b, r, c.subscribers)
			}
			must(b, r.cmd.Process.Signal(syscall.SIGSTOP))
			defer func() { must(b, r.cmd.Process.Signal(syscall.SIGCONT)) }()
			flood(b, rooms)
		})
	}
}

// flood has every room forward the same, as fast as they can.
func flood(b *testing.B, rooms []*floodedRoom) {
	b.Helper()
	const chunk, packets = 10 * fanOutBurst, 1 << 18 // at a time to a room, and for one N
	for _, room := range rooms {
		eventually(b, "all slots show the publisher", func() bool {
			before := room.forwarded()
			room.push(b, fanOutBurst)
			<-time.After(50 * time.Millisecond)
			return room.forwarded()-before == uint64(fanOutBurst*room.subscribers)
		})
		room.wanted = room.forwarded()
	}
	sent := 0
	begun, cpu, demand := time.Now(), cpuTime(b), wantedCPU(b)
	b.ResetTimer()
	for sent < b.N*packets {
		for _, room := range rooms {
			for room.wanted-room.forwarded() > uint64(chunk*room.subscribers) {
				<-time.After(100 * time.Microsecond)
			}
			room.push(b, chunk)
			room.wanted += uint64(chunk * room.subscribers)
			sent += chunk * room.subscribers
		}
	}
	for _, room := range rooms {
		for room.forwarded() < room.wanted {
			<-time.After(100 * time.Microsecond)
		}
	}
	b.StopTimer()
	elapsed, cpu, demand := time.Since(begun), cpuTime(b)-cpu, wantedCPU(b)-demand
	cost, busy := cpu.Seconds()/float64(sent), min(demand.Seconds()/elapsed.Seconds(), float64(runtime.GOMAXPROCS(0)))
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(sent)/elapsed.Seconds(), "packets/s")
	b.ReportMetric(cost*1e6, "cpu-us/packet")
	b.ReportMetric(busy, "cores")
	b.ReportMetric(busy/cost, "packets/s-alone")
}

// wantedCPU is for how long the threads of this process have run or have waited for a core, together.
func wantedCPU(b *testing.B) time.Duration {
	b.Helper()
	files, err := filepath.Glob("/proc/self/task/*/schedstat")
	must(b, err)
	var sum time.Duration
	for _, file := range files {
		text, err := os.ReadFile(file)
		if errors.Is(err, os.ErrNotExist) {
			continue // The thread has ended.
		}
		must(b, err)
		var ran, waited time.Duration
		_, err = fmt.Sscan(string(text), &ran, &waited)
		must(b, err)
		sum += ran + waited
	}
	return sum
}

// floodedRoom is a room whose publisher is the benchmark.
type floodedRoom struct {
	media       *forward.Room
	layer       *forward.Layer
	packet      rtp.Packet
	subscribers int
	wanted      uint64 // packets that are to be forwarded, in all
}

// flooded makes a room with subscribers.
func (s *stage) flooded(b *testing.B, r *receiver, subscribers int) *floodedRoom {
	b.Helper()
	cfg := s.looseConfig()
	var parts []*egress.Batch
	var batchers []forward.Batcher
	for range cores() {
		part := s.node.socket.NewBatch()
		parts, batchers = append(parts, part), append(batchers, part)
	}
	cfg.Room = s.looseRoom(batchers...)
	for i := range subscribers {
		cfg.Shard = i / shardPeers % len(parts)
		cfg.Batch = parts[cfg.Shard]
		connectClient(b, s.server(b, cfg), r, i, clientKind{Profile: dtls.SRTP_AEAD_AES_128_GCM, Video: 1})
	}
	return &floodedRoom{
		media: cfg.Room, subscribers: subscribers,
		layer: cfg.Room.AddLayer(forward.LayerConfig{
			Peer: "publisher", Source: forward.SourceCamera, Kind: forward.KindVideo, Codec: forward.Codec{MimeType: "video/VP8", PayloadType: 96},
		}),
		packet: rtp.Packet{Header: rtp.Header{Version: 2, PayloadType: 96, SSRC: 1}, Payload: []byte(keyframe + strings.Repeat("x", fanOutPayload-len(keyframe)))},
	}
}

func (r *floodedRoom) forwarded() uint64 { return r.media.Stats().PacketsForwarded }

// push has the room forward frames of so many packets in all.
func (r *floodedRoom) push(b *testing.B, packets int) {
	b.Helper()
	for i := range packets {
		r.packet.SequenceNumber++
		r.packet.Marker = i%fanOutBurst == fanOutBurst-1
		p := r.media.GetPacket()
		n, err := r.packet.MarshalTo(p.Buffer())
		must(b, err)
		p.SetLength(n)
		r.layer.Push(p)
	}
}
