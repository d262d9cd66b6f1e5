package peer

import (
	"log/slog"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

const slotMid = "7"

var her = StreamID{Peer: "ada", Source: wire.SourceCamera}

// viewer is a peer whose slot is fed by the test.
func viewer(t interface{ Fatal(...any) }) *Peer {
	p, err := New(Options{ListenOnly: true, Stack: &Stack{}}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	p.nextConnection()
	return p
}

func (p *Peer) shows(who wire.PeerID) {
	p.show([]wire.Slot{{Mid: slotMid, Kind: wire.KindVideo, Peer: who, Source: her.Source}})
}

// TestGapsAreThePausesWhileShown: the longest of the pauses between packets, in
// whatever order they come, and the unfinished one at the end.
func TestGapsAreThePausesWhileShown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := viewer(t)
		p.shows(her.Peer)
		now := p.Stats().Streams[her].Since
		var longest time.Duration
		pauses := rapid.SliceOfN(rapid.IntRange(0, 5000), 0, 50).Draw(t, "pauses in ms")
		for i, pause := range pauses {
			step := time.Duration(pause) * time.Millisecond
			now = now.Add(step)
			p.arrived(arrival{at: now, mid: slotMid, connection: 1, number: uint16(i), bytes: 100, media: true})
			if i > 0 {
				longest = max(longest, step)
			}
		}
		tail := time.Duration(rapid.IntRange(0, 5000).Draw(t, "tail in ms")) * time.Millisecond
		s := p.Stats().Streams[her]
		if s.LongestGap != longest || s.Packets != uint64(len(pauses)) {
			t.Fatalf("longest gap %s of %d packets, want %s of %d", s.LongestGap, s.Packets, longest, len(pauses))
		}
		if got := s.GapUntil(now.Add(tail)); got != max(longest, tail) {
			t.Fatalf("gap until the end %s, want %s", got, max(longest, tail))
		}
	})
}

func TestAPauseWhileHiddenIsNoGap(t *testing.T) {
	p := viewer(t)
	p.shows(her.Peer)
	now := time.Now()
	come := func(after time.Duration, connection int) {
		now = now.Add(after)
		p.arrived(arrival{at: now, mid: slotMid, connection: connection, bytes: 100, media: true})
	}
	come(0, 1)
	come(20*time.Millisecond, 1)
	p.shows("grace")
	if gap := p.Stats().Streams[her].GapUntil(now.Add(time.Hour)); gap != 20*time.Millisecond {
		t.Errorf("hidden for an hour, the gap is %s", gap)
	}
	now = now.Add(time.Hour)
	p.shows(her.Peer)
	come(0, 1)
	if gap := p.Stats().Streams[her].LongestGap; gap != 20*time.Millisecond {
		t.Errorf("shown again, the gap is %s", gap)
	}

	// A room that moves shows nobody for a moment: that is the gap.
	p.mu.Lock()
	p.moving = true
	p.mu.Unlock()
	p.nextConnection()
	p.shows("")
	p.shows(her.Peer)
	come(300*time.Millisecond, 2)
	come(20*time.Millisecond, 2)
	s := p.Stats().Streams[her]
	if len(s.Moves) != 1 || s.Moves[0] != 300*time.Millisecond || s.LongestGap != 300*time.Millisecond || s.Connection != 2 {
		t.Errorf("after the move: %+v", s)
	}
	if got := <-p.moved; got.GapMs != 300 || got.How != wire.HowNewConnection {
		t.Errorf("the server is told of %+v", got)
	}

	// So is that of a connection with which another node goes on.
	p.shows("")
	p.shows(her.Peer)
	now = now.Add(400 * time.Millisecond)
	p.arrived(arrival{at: now, mid: slotMid, connection: 2, hop: 1, bytes: 100, media: true})
	if s := p.Stats().Streams[her]; len(s.Moves) != 2 || s.Moves[1] != 400*time.Millisecond {
		t.Errorf("at the next node: %+v", s)
	}
}

// TestWhatIsNoMedia counts for nobody: padding, and what a replaced connection
// still brings.
func TestWhatIsNoMedia(t *testing.T) {
	p := viewer(t)
	p.shows(her.Peer)
	now := time.Now()
	p.arrived(arrival{at: now, mid: slotMid, connection: 1, number: 1, bytes: 255})
	if s := p.Stats(); s.Streams[her].Packets != 0 || !s.FirstMedia.IsZero() || s.Loss.Received != 1 {
		t.Errorf("padding counted as media: %+v", s)
	}
	p.arrived(arrival{at: now, mid: slotMid, connection: 1, number: 3, bytes: 100, media: true})
	p.nextConnection()
	p.arrived(arrival{at: now, mid: slotMid, connection: 1, number: 900, bytes: 100, media: true})
	p.arrived(arrival{at: now, mid: slotMid, connection: 2, number: 50, bytes: 100, media: true})
	if loss := p.Stats().Loss; loss.Expected != 4 || loss.Lost() != 1 {
		t.Errorf("loss over two connections: %+v", loss)
	}
	p.arrived(arrival{at: now, mid: "9", connection: 2, bytes: 100, media: true})
	if n := len(p.Stats().Streams); n != 1 {
		t.Errorf("%d streams, want 1: an unnamed slot is nobody's", n)
	}
}

// TestTheFirstSoundOfANewConnectionCounts: in a large room it may be of somebody who was in no slot before.
func TestTheFirstSoundOfANewConnectionCounts(t *testing.T) {
	p := viewer(t)
	var first []StreamID
	p.opts.Observe = func(m Moment) {
		if m.Step == StepFirst {
			first = append(first, m.Stream)
		}
	}
	speaks := func(who wire.PeerID, connection int) {
		p.show([]wire.Slot{{Mid: slotMid, Kind: wire.KindAudio, Peer: who, Source: wire.SourceMicrophone}})
		p.arrived(arrival{at: time.Now(), mid: slotMid, connection: connection, bytes: 100, media: true})
	}
	speaks("ada", 1)
	if len(first) > 0 {
		t.Errorf("on the first connection %v counts", first)
	}
	p.nextConnection()
	speaks("bob", 2)
	speaks("carol", 2)
	if len(first) != 1 || first[0].Peer != "bob" {
		t.Errorf("on the second connection %v counts, want bob", first)
	}
}

// TestALiveMoveShowsOneConnection: the old table stands for what the old connection brings, until the new one brings all of it.
func TestALiveMoveShowsOneConnection(t *testing.T) {
	p := viewer(t)
	ada, bob := StreamID{"ada", wire.SourceMicrophone}, StreamID{"bob", wire.SourceMicrophone}
	table := func(first, second wire.PeerID) {
		p.show([]wire.Slot{
			{Mid: "4", Kind: wire.KindAudio, Peer: first, Source: wire.SourceMicrophone},
			{Mid: "5", Kind: wire.KindAudio, Peer: second, Source: wire.SourceMicrophone},
		})
	}
	now := time.Now()
	come := func(mid string, connection int) {
		now = now.Add(20 * time.Millisecond)
		p.arrived(arrival{at: now, mid: mid, connection: connection, bytes: 100, media: true})
	}
	table("ada", "bob")
	come("4", 1)
	come("5", 1)
	p.leaves()
	p.mu.Lock()
	p.moving = true
	p.mu.Unlock()
	p.nextConnection()
	table("bob", "ada") // in other slots
	come("4", 1)
	come("5", 2)
	if s := p.Stats().Streams; s[ada].Connection != 2 || s[bob].Connection != 1 || len(p.moved) != 0 {
		t.Errorf("ada has come, bob has not: %+v, told %d", s, len(p.moved))
	}
	come("4", 1) // ada's, twice
	come("4", 2)
	if s := p.Stats().Streams; s[ada].Packets != 3 || s[bob].Packets != 2 || s[ada].LongestGap > 60*time.Millisecond {
		t.Errorf("counted twice, or for somebody else: %+v", s)
	}
	if got := <-p.moved; got.How != wire.HowLive || got.GapMs == 0 || got.GapMs > 100 {
		t.Errorf("the server is told of %+v", got)
	}
}
