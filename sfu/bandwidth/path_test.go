package bandwidth

import (
	"testing"
	"testing/synctest"
	"time"
)

// report makes a report of a receiver.
func report(base uint16, at time.Duration, packets ...Arrival) Report {
	return Report{Base: base, Reference: uint32(at / (64 * time.Millisecond)), Packets: packets}
}

// congest sends 300 packets, of which from the hundredth on each comes 4 ms later than the one before it.
func congest(p *Path) {
	for i := range 300 {
		sequence := p.Next(1200)
		at := time.Duration(i)*10*time.Millisecond + time.Duration(max(i-100, 0))*4*time.Millisecond
		within := at % (64 * time.Millisecond)
		p.Feedback(report(sequence, at, Arrival{Received: true, Delta: within}))
		<-time.After(10 * time.Millisecond) // synthetic: the bubble's clock jumps
	}
}

// TestPathTellsItsTarget: a queue that stands is told of, once.
func TestPathTellsItsTarget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []uint64
		var p *Path
		p = NewPath(0, func() { told = append(told, p.Target()) })
		congest(p)
		// 1200 bytes in 14 ms are 686 kbit/s.
		if len(told) == 0 || told[0] < 500_000 || told[0] > 600_000 {
			t.Fatal("told", told)
		}
	})
}

// TestABrowserGoesOnWithAnotherNodesNumbers: its reports count nothing as lost,
// and ours are believed once our numbers are beyond its own.
func TestABrowserGoesOnWithAnotherNodesNumbers(t *testing.T) {
	p := NewPath(0, func() { t.Error("told a target") })
	for range 100 {
		p.Next(1200)
	}
	lost := make([]Arrival, 500)
	p.Feedback(report(0, 0, lost...))
	if got := p.Next(1200); got != 500 {
		t.Fatalf("the next number is %d, want 500", got)
	}
	p.Feedback(report(0, 0, lost...)) // another one that was on its way
	for range 10 {
		p.Feedback(report(0, 0, lost...))
	}
}

// TestAForeignReportKeepsTheTarget: what the path was found to carry stands, and is probed.
func TestAForeignReportKeepsTheTarget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPath(400_000, func() { t.Error("told a target") })
		p.Feedback(report(p.Next(1200), 0, make([]Arrival, 500)...)) // of numbers that were never sent here
		if got := p.Target(); got != 400_000 {
			t.Errorf("target %d, want 400000", got)
		}
		if p.Probe(1_000_000, false) > 0 {
			t.Error("it is probed at once, while keyframes are on their way")
		}
		<-time.After(probeFirst) // synthetic
		if p.Probe(1_000_000, false) == 0 {
			t.Error("it is not probed in time")
		}
	})
}

// TestWhatIsLostWithTheFormerWayIsNoCongestion: a relay dies, and what it carried is reported lost by the next one.
func TestWhatIsLostWithTheFormerWayIsNoCongestion(t *testing.T) {
	for _, start := range []uint64{0, 400_000} {
		synctest.Test(t, func(t *testing.T) {
			p := NewPath(start, func() { t.Errorf("begun with %d: told a target", start) })
			const each, first, last = 15 * time.Millisecond, 100, 140 // sent while there was no way
			for i := range 300 {
				sequence := p.Next(200)
				at := time.Duration(i) * each
				came := Arrival{Received: true, Delta: at % (64 * time.Millisecond)}
				switch {
				case i == last:
					p.Moved()
					p.Feedback(report(first, at, append(make([]Arrival, last-first), came)...))
				case i < first || i > last:
					p.Feedback(report(sequence, at, came))
				}
				<-time.After(each) // synthetic
			}
		})
	}
}

// TestAStartIsBounded: what another node says is no reason to send nothing, and what is said of a wide path limits nothing.
func TestAStartIsBounded(t *testing.T) {
	for start, want := range map[uint64]uint64{
		0: 0, 1: leastTarget, leastTarget + 1: leastTarget + 1, mostStart - 1: mostStart - 1, mostStart: 0, 1<<64 - 1: 0,
	} {
		if got := NewPath(start, nil).Target(); got != want {
			t.Errorf("begun with %d the target is %d, want %d", start, got, want)
		}
	}
}

func TestRemoteClockTurnsOver(t *testing.T) {
	var c remoteClock
	first := c.extend(1<<24 - 1)
	if got := c.extend(1) - first; got != 2*64*time.Millisecond {
		t.Fatal("over the end:", got)
	}
	if got := c.extend(1<<24-1) - first; got != 0 {
		t.Fatal("and back:", got)
	}
}

func TestNextAllocatesNothing(t *testing.T) {
	p := NewPath(0, nil)
	if n := testing.AllocsPerRun(1000, func() { p.Next(1200) }); n != 0 {
		t.Fatalf("%v allocations", n)
	}
}

func BenchmarkNext(b *testing.B) {
	p := NewPath(0, nil)
	b.ReportAllocs()
	for b.Loop() {
		p.Next(1200)
	}
}

func FuzzFeedback(f *testing.F) {
	f.Add(uint16(0), uint32(0), []byte{1, 0, 5, 255})
	f.Add(uint16(65530), uint32(1<<24-1), []byte{200, 0, 0, 3})
	f.Fuzz(func(_ *testing.T, base uint16, reference uint32, packets []byte) {
		p := NewPath(uint64(base), func() {})
		for range 50 {
			p.Next(1000)
		}
		r := Report{Base: base, Reference: reference}
		for _, b := range packets {
			r.Packets = append(r.Packets, Arrival{Received: b != 0, Delta: (time.Duration(b) - 100) * 250 * time.Microsecond})
		}
		for range 3 {
			p.Feedback(r)
			p.Probe(1_000_000, base%2 == 0)
		}
	})
}
