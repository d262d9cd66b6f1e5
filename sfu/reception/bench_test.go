package reception

import (
	"testing"
	"time"

	"github.com/pion/rtcp"
)

// lossy feeds one packet of a stream that loses one in fifty and asks what is due as a media node would.
func lossy(r *Receiver, n int, out []rtcp.Packet) []rtcp.Packet {
	now := begin.Add(time.Duration(n) * 2 * time.Millisecond)
	if n%50 != 7 {
		r.Received(video, uint16(n), uint32(n)*180, now)
	}
	if n%50 == 20 {
		r.Repaired(video, uint16(n-13), now)
	}
	r.Transport(uint16(n), video, now)
	if next := r.Next(); !next.IsZero() && !now.Before(next) {
		return r.Due(now, out[:0])
	}
	return out
}

// BenchmarkPacket is a packet that comes; due loses 2 % and includes the making of RTCP.
func BenchmarkPacket(b *testing.B) {
	b.Run("received", func(b *testing.B) {
		r := newVideo()
		b.ReportAllocs()
		for n := 0; b.Loop(); n++ {
			now := begin.Add(time.Duration(n) * 2 * time.Millisecond)
			r.Received(video, uint16(n), uint32(n)*180, now)
			r.Transport(uint16(n), video, now)
		}
	})
	b.Run("due", func(b *testing.B) {
		r := newVideo()
		var out []rtcp.Packet
		b.ReportAllocs()
		for n := 0; b.Loop(); n++ {
			out = lossy(r, n, out)
		}
	})
	b.Run("hostile", func(b *testing.B) {
		r := newVideo()
		b.ReportAllocs()
		for n := 0; b.Loop(); n++ {
			now := begin.Add(time.Duration(n) * 2 * time.Millisecond)
			r.Received(video, uint16(n*200), 0, now)
			r.Transport(uint16(n*32767), video, now)
		}
	})
}

// TestAPacketAllocatesNothing, whatever its numbers, once the window is there.
func TestAPacketAllocatesNothing(t *testing.T) {
	for name, step := range map[string]int{"in order": 1, "gaps": 3, "great gaps": 200, "jumps": 32_767, "back": 65_535 - 2000} {
		r := newVideo()
		n := 0
		packet := func() {
			now := begin.Add(time.Duration(n) * time.Millisecond)
			r.Received(video, uint16(n*step), 0, now)
			r.Repaired(video, uint16(n*step-1), now)
			r.Transport(uint16(n*step), video, now)
			n++
		}
		for range 2000 {
			packet()
		}
		if allocations := testing.AllocsPerRun(2000, packet); allocations != 0 {
			t.Errorf("%s: %v allocations a packet", name, allocations)
		}
	}
}
