package reception

import (
	"slices"
	"testing"
	"time"
)

// receive has all of some numbers come at one time.
func receive(r *Receiver, now time.Time, sequences ...uint16) {
	for _, sequence := range sequences {
		r.Received(video, sequence, 0, now)
	}
}

func newVideo() *Receiver {
	r := New(1)
	r.Add(video, 90_000, RTX)
	return r
}

// nacksUntilSilence are the numbers asked for, and when, since begin, if nothing more comes.
func nacksUntilSilence(r *Receiver) (sequences []uint16, at []time.Duration) {
	for next := r.Next(); !next.IsZero(); next = r.Next() {
		for _, sequence := range asked(r.Due(next, nil)) {
			sequences, at = append(sequences, sequence), append(at, next.Sub(begin))
		}
	}
	return sequences, at
}

func TestALostPacketIsAskedForTenTimesAtMost(t *testing.T) {
	r := newVideo()
	receive(r, begin, 65_535, 1)
	sequences, at := nacksUntilSilence(r)
	if len(at) != maxTries {
		t.Fatalf("asked for %v at %v, want %d times", sequences, at, maxTries)
	}
	if at[0] < 10*time.Millisecond || at[0] > 20*time.Millisecond {
		t.Errorf("first asked for after %v, want 10 to 20 ms", at[0])
	}
	for i, sequence := range sequences {
		if sequence != 0 {
			t.Errorf("asked for %d, want 0", sequence)
		}
		if i > 0 && at[i]-at[i-1] < startSpacing {
			t.Errorf("asked at %v and %v, want %v between", at[i-1], at[i], startSpacing)
		}
	}
	if receive(r, begin.Add(time.Hour), 2); len(r.streams[0].lost) != 0 {
		t.Errorf("%v is still known after it was given up", r.streams[0].lost)
	}
}

func TestWhatCameIsNotAskedFor(t *testing.T) {
	for name, comes := range map[string]func(*Receiver) bool{
		"late":     func(r *Receiver) bool { receive(r, begin, 2); return true },
		"repaired": func(r *Receiver) bool { return r.Repaired(video, 2, begin) },
	} {
		r := newVideo()
		receive(r, begin, 1, 4)
		if !comes(r) {
			t.Errorf("%s: the packet was not missing", name)
		}
		if r.Repaired(video, 2, begin) || r.Repaired(video, 1, begin) || r.Repaired(video, 5, begin) {
			t.Errorf("%s: a packet was repaired that was not missing", name)
		}
		if sequences := asked(r.Due(r.Next(), nil)); !slices.Equal(sequences, []uint16{3}) {
			t.Errorf("%s: asked for %v, want 3", name, sequences)
		}
	}
}

func TestNothingIsAskedFor(t *testing.T) {
	sound := New(1)
	sound.Add(video, 48_000, NoRepair)
	receive(sound, begin, 1, 3)
	gap := newVideo()
	receive(gap, begin, 1, 3, 3+maxLost+2)
	behind := newVideo()
	receive(behind, begin, 1, 3)
	for n := uint16(4); n < 3+window; n++ {
		receive(behind, begin, n)
	}
	receive(behind, begin, 3+window, 3+window+2)
	for name, c := range map[string]struct {
		r    *Receiver
		want []uint16
	}{
		"of a stream without NACK":         {sound, nil},
		"after a gap of more than maxLost": {gap, nil},
		"that is far behind":               {behind, []uint16{3 + window + 1}},
	} {
		if sequences := asked(c.r.Due(begin.Add(time.Second), nil)); !slices.Equal(sequences, c.want) {
			t.Errorf("%s: asked for %v, want %v", name, sequences, c.want)
		}
	}
	old := newVideo()
	receive(old, begin, 1, 3)
	if sequences := asked(old.Due(begin.Add(maxAge+time.Millisecond), nil)); len(sequences) > 0 {
		t.Errorf("asked for %v after more than %v", sequences, maxAge)
	}
}

// TestARoundTripFromElsewhere spaces the requests of a publisher whose repairs cannot be told from originals.
func TestARoundTripFromElsewhere(t *testing.T) {
	for roundTrip, want := range map[time.Duration]time.Duration{
		0: leastSpacing, 80 * time.Millisecond: 100 * time.Millisecond, time.Minute: mostSpacing,
	} {
		r := newVideo()
		r.RoundTrip(roundTrip)
		receive(r, begin, 1, 3)
		_, at := nacksUntilSilence(r)
		if len(at) < 2 || at[1]-at[0] < want || at[1]-at[0] > want {
			t.Errorf("a round trip of %v: asked at %v, want %v between", roundTrip, at, want)
		}
	}
}

// TestARepeatedOriginalIsNoReordering: without RTX a retransmission looks like an original that is late. If the wait before the first
// request grew by it, the next would be later still.
func TestARepeatedOriginalIsNoReordering(t *testing.T) {
	for repair, want := range map[Repair]time.Duration{Repeats: leastWait, RTX: 25 * time.Millisecond} {
		r := New(1)
		r.Add(video, 48_000, repair)
		receive(r, begin, 1, 3)
		if got := asked(r.Due(begin.Add(leastWait), nil)); !slices.Equal(got, []uint16{2}) {
			t.Fatalf("asked for %v, want 2", got)
		}
		receive(r, begin.Add(25*time.Millisecond), 2)
		if r.path.wait != want {
			t.Errorf("repair %d: a packet that was asked for and came after 25 ms leads to a wait of %v, want %v", repair, r.path.wait, want)
		}
	}
}
