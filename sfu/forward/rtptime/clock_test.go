package rtptime

import (
	"testing"
	"time"
)

var epoch = time.Unix(1_800_000_000, 0)

func TestPeerClock(t *testing.T) {
	var c PeerClock
	theirs, ours := time.Unix(0, 0), time.Unix(1_800_000_000, 0)
	c.Observe(theirs, ours)
	first := c.Offset
	c.Observe(theirs, ours.Add(160*time.Millisecond)) // a report that was held up
	if c.Offset != first+10*time.Millisecond {
		t.Fatal(c.Offset - first)
	}
	c.Observe(theirs.Add(time.Hour), ours) // somebody set the clock
	if c.Offset != first-time.Hour {
		t.Fatal(c.Offset - first)
	}
	if got := FromNTP(NTP(ours.Add(123456789))); got.Sub(ours.Add(123456789)).Abs() > time.Microsecond {
		t.Fatal(got)
	}
}

// FuzzSenderReport: whatever clocks a client has, the slot that shows it moves forward in time.
func FuzzSenderReport(f *testing.F) {
	f.Add(NTP(epoch), uint32(0), uint32(3000))
	f.Add(uint64(0), ^uint32(0), uint32(1)<<31)
	f.Add(^uint64(0), uint32(1)<<31, uint32(0))
	f.Fuzz(func(t *testing.T, ntp uint64, at, timestamp uint32) {
		clock, layer := PeerClock{}, StreamClock{Rate: 90000}
		for i := range 3 {
			now := epoch.Add(time.Duration(i) * time.Second)
			theirs := FromNTP(ntp + uint64(i)<<32)
			clock.Observe(theirs, now)
			layer.Report(theirs.Add(clock.Offset), at)
			if s := layer.Sampled(layer.Timestamp(now)); s.Sub(now).Abs() > time.Millisecond && s.Sub(now).Abs() < 12*time.Hour {
				t.Fatalf("sampled at %v, want %v", s, now)
			}
			_ = layer.Sampled(timestamp)
		}
	})
}
