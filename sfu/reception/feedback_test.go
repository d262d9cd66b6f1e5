package reception

import (
	"slices"
	"testing"
	"time"

	"github.com/pion/rtcp"
)

// status is what a feedback packet says of one number.
type status struct {
	sequence uint16
	received bool
	arrived  time.Duration // since the Receiver began
}

// readFeedback reads a packet as Pion parses it.
func readFeedback(t testing.TB, packet *rtcp.TransportLayerCC) (statuses []status) {
	t.Helper()
	at := time.Duration(packet.ReferenceTime) * 64 * time.Millisecond
	deltas := packet.RecvDeltas
	add := func(symbol uint16) {
		if len(statuses) == int(packet.PacketStatusCount) {
			return
		}
		s := status{sequence: packet.BaseSequenceNumber + uint16(len(statuses)), received: symbol != rtcp.TypeTCCPacketNotReceived}
		if s.received {
			if len(deltas) == 0 {
				t.Fatalf("fewer differences than packets in %v", packet)
			}
			at += time.Duration(deltas[0].Delta) * time.Microsecond
			s.arrived, deltas = at, deltas[1:]
		}
		statuses = append(statuses, s)
	}
	for _, chunk := range packet.PacketChunks {
		switch chunk := chunk.(type) {
		case *rtcp.RunLengthChunk:
			for range chunk.RunLength {
				add(chunk.PacketStatusSymbol)
			}
		case *rtcp.StatusVectorChunk:
			for _, symbol := range chunk.SymbolList {
				add(symbol)
			}
		}
	}
	if len(statuses) != int(packet.PacketStatusCount) || len(deltas) != 0 {
		t.Fatalf("%d of %d statuses, %d differences left in %v", len(statuses), packet.PacketStatusCount, len(deltas), packet)
	}
	return statuses
}

// overTheWire is what the other side reads of packets, each within a datagram.
func overTheWire(t testing.TB, packets []rtcp.Packet) (read []rtcp.Packet) {
	t.Helper()
	for _, packet := range packets {
		data, err := packet.Marshal()
		if err != nil {
			t.Fatalf("marshal %v: %v", packet, err)
		}
		if len(data) > 1200 {
			t.Fatalf("%d bytes, want at most 1200: %v", len(data), packet)
		}
		parsed, err := rtcp.Unmarshal(data)
		if err != nil || len(parsed) != 1 {
			t.Fatalf("parse %v: %v", packet, err)
		}
		read = append(read, parsed...)
	}
	return read
}

func feedbackOf(t testing.TB, packets []rtcp.Packet) (statuses []status) {
	t.Helper()
	for _, packet := range overTheWire(t, packets) {
		if feedback, ok := packet.(*rtcp.TransportLayerCC); ok {
			statuses = append(statuses, readFeedback(t, feedback)...)
		}
	}
	return statuses
}

func TestFeedbackSaysWhatArrived(t *testing.T) {
	type arrival struct {
		sequence uint16
		at       time.Duration
	}
	const ms = time.Millisecond
	for name, c := range map[string]struct {
		arrivals []arrival
		want     []status
	}{
		"in order": {
			[]arrival{{5, 0}, {6, ms}, {7, 2 * ms}},
			[]status{{5, true, 0}, {6, true, ms}, {7, true, 2 * ms}},
		},
		"one lost, over the wrap": {
			[]arrival{{65534, 0}, {0, ms}},
			[]status{{65534, true, 0}, {65535, false, 0}, {0, true, ms}},
		},
		"reordered": {
			[]arrival{{5, 0}, {7, 90 * ms}, {6, 95 * ms}},
			[]status{{5, true, 0}, {6, true, 95 * ms}, {7, true, 90 * ms}},
		},
		"before the first": {
			[]arrival{{5, 0}, {3, ms}},
			[]status{{3, true, ms}, {4, false, 0}, {5, true, 0}},
		},
		"the second copy does not count": {
			[]arrival{{5, 0}, {6, ms}, {5, 2 * ms}, {6, 2 * ms}},
			[]status{{5, true, 0}, {6, true, ms}},
		},
		"further apart than a difference can say": {
			[]arrival{{5, 0}, {6, 20 * time.Second}},
			[]status{{5, true, 0}, {6, true, 20 * time.Second}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := New(1)
			for _, a := range c.arrivals {
				r.Transport(a.sequence, video, begin.Add(a.at))
			}
			if got := feedbackOf(t, r.Due(begin.Add(time.Minute), nil)); !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
			if !r.Next().IsZero() {
				t.Errorf("something is due at %v after all was told", r.Next())
			}
		})
	}
}

// TestALatePacketIsTold together with its successors, which were told before: they have not become lost.
func TestALatePacketIsTold(t *testing.T) {
	r := New(1)
	for _, sequence := range []uint16{1, 2, 4, 5} {
		r.Transport(sequence, video, begin)
	}
	r.Due(r.Next(), nil)
	r.Transport(3, video, begin.Add(200*time.Millisecond))
	r.Transport(6, video, begin.Add(200*time.Millisecond))
	got := feedbackOf(t, r.Due(r.Next(), nil))
	want := []status{{3, true, 200 * time.Millisecond}, {4, true, 0}, {5, true, 0}, {6, true, 200 * time.Millisecond}}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestFeedbackFollowsTheRate: every 50 ms while much comes, every 100 for a voice, nothing after nothing.
func TestFeedbackFollowsTheRate(t *testing.T) {
	for _, c := range []struct{ interval, want time.Duration }{
		{2 * time.Millisecond, fastFeedback},
		{20 * time.Millisecond, slowFeedback},
	} {
		r := New(1)
		var last, now time.Duration
		for n := range 1000 {
			now += c.interval
			r.Transport(uint16(n), video, begin.Add(now))
			if next := r.Next(); !next.After(begin.Add(now)) {
				if len(r.Due(begin.Add(now), nil)) != 1 {
					t.Fatal("Next names a time at which nothing is due")
				}
				if gap := now - last; last > 0 && (gap < c.want || gap > c.want+c.interval) {
					t.Errorf("a packet each %v: feedback after %v, want %v", c.interval, gap, c.want)
				}
				last = now
			}
		}
		r.Due(begin.Add(now+time.Second), nil)
		if last == 0 || !r.Next().IsZero() {
			t.Errorf("feedback at %v, next at %v; want some, and none after the last packet", last, r.Next())
		}
	}
}

// TestFeedbackAfterAJump: what is said after the numbers jumped, of packets that came after it, is right, and little.
func TestFeedbackAfterAJump(t *testing.T) {
	for _, jump := range []uint16{600, 1023, 1024, 5000, 32767, 32768, 40000, 65536 - 2000} {
		r := New(1)
		r.Transport(100, video, begin)
		r.Due(begin.Add(time.Second), nil)
		for n := range uint16(3) {
			r.Transport(100+jump+n, video, begin.Add(2*time.Second))
		}
		got := feedbackOf(t, r.Due(begin.Add(3*time.Second), nil))
		var came []uint16
		for _, s := range got {
			if s.received {
				came = append(came, s.sequence-100-jump)
			}
		}
		if len(got) > window || !slices.Equal(came, []uint16{0, 1, 2}) && !slices.Equal(came, []uint16{1, 2}) {
			t.Errorf("jump of %d: %d statuses, received are %v after the jump", jump, len(got), came)
		}
	}
}
