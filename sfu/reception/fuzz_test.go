package reception

import (
	"encoding/binary"
	"slices"
	"testing"
	"time"

	"github.com/pion/rtcp"
)

// truth is what came, as the fuzzer knows it.
type truth struct {
	began   time.Time
	came    [2]map[uint16]bool         // of each stream, since its number was last skipped
	arrived map[uint16][]time.Duration // transport-wide
}

// FuzzReceiver: whatever numbers come whenever, what is remembered stays bounded, all that is written can be read, nothing is
// asked for that has come, and feedback tells the truth.
func FuzzReceiver(f *testing.F) {
	f.Add([]byte{0, 0, 0, 1, 0, 0, 0, 3, 0xc0, 20, 0, 0, 0x80, 0, 0, 2, 0x81, 0, 9, 9, 0xc0, 20, 0, 0})
	f.Add([]byte{0x40, 1, 0, 0, 0x40, 1, 0x7f, 0xff, 0x40, 1, 0xff, 0xfe, 0x40, 1, 0xff, 0xff, 0xc0, 0xff, 0, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		r := New(1)
		r.Add(0, 90_000, RTX)
		r.Add(1, 48_000, Repeats)
		now := begin
		known := truth{begin, [2]map[uint16]bool{{}, {}}, map[uint16][]time.Duration{}}
		for ; len(data) >= 4; data = data[4:] {
			// Two bits say what happens, one that time goes back, one of which stream; the second byte how much later; the rest the number.
			ssrc, sequence := uint32(data[0]&1), binary.BigEndian.Uint16(data[2:])
			later := time.Duration(data[1]) * time.Duration(data[1]) * 100 * time.Microsecond
			if data[0]&0x20 != 0 {
				later = -later
			}
			now = now.Add(later)
			r.since(begin)
			switch data[0] >> 6 {
			case 0:
				before := r.streams[ssrc].newest
				r.Received(ssrc, sequence, binary.BigEndian.Uint32(data), now)
				known.received(ssrc, sequence, before, r.streams[ssrc].newest)
			case 1:
				r.Transport(sequence, ssrc, now)
				known.arrived[sequence] = append(known.arrived[sequence], now.Sub(begin))
			case 2:
				if r.Repaired(ssrc, sequence, now) {
					known.came[ssrc][sequence] = true
				}
				r.SenderReport(ssrc, uint64(sequence)<<16, now)
				r.RoundTrip(later)
			case 3:
				known.check(t, r.Due(now, nil))
			}
			for _, s := range r.streams {
				if len(s.lost) > maxLost || cap(s.lost) > 2*maxLost {
					t.Fatalf("%d packets are known to be missing, in room for %d", len(s.lost), cap(s.lost))
				}
			}
		}
		for range 2 * maxTries {
			if next := r.Next(); !next.IsZero() {
				known.check(t, r.Due(next, nil))
			}
		}
	})
}

// received notes a packet that moved the newest number of its stream.
func (k *truth) received(ssrc uint32, sequence uint16, before, after int64) {
	if after < before || after > before+maxDropout {
		clear(k.came[ssrc])
	}
	for n := before + 1; n <= min(after, before+maxDropout); n++ {
		delete(k.came[ssrc], uint16(n))
	}
	k.came[ssrc][sequence] = true
}

func (k *truth) check(t *testing.T, packets []rtcp.Packet) {
	t.Helper()
	for _, packet := range overTheWire(t, packets) {
		switch packet := packet.(type) {
		case *rtcp.TransportLayerNack:
			for _, sequence := range asked([]rtcp.Packet{packet}) {
				if k.came[packet.MediaSSRC][sequence] {
					t.Fatalf("asked for %d of %d, which came", sequence, packet.MediaSSRC)
				}
			}
		case *rtcp.TransportLayerCC:
			for _, s := range readFeedback(t, packet) {
				const wrap = 64 * time.Millisecond << 24
				if s.received && !slices.ContainsFunc(k.arrived[s.sequence], func(at time.Duration) bool {
					off := ((at-s.arrived)%wrap + wrap) % wrap
					return off < tick || off > wrap-tick
				}) {
					t.Fatalf("feedback tells that %d arrived at %v, which it did at %v", s.sequence, s.arrived, k.arrived[s.sequence])
				}
			}
		case *rtcp.ReceiverReport:
		default:
			t.Fatalf("%T is due", packet)
		}
	}
}
