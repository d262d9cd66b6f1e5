package egress

import (
	"bytes"
	"encoding/binary"
	"testing"
	"time"
)

var start = time.Date(2026, 11, 25, 0, 0, 0, 0, time.UTC)

// fill puts in packets of a frame, and returns how many were taken in.
func (b *backlog) fill(frame Frame, packets int, now time.Time) (taken int) {
	for range packets {
		before := b.waiting
		b.put(frame, make([]byte, 1000), now)
		if b.waiting > before {
			taken++
		}
	}
	return taken
}

// write takes blocks out until at most so many bytes wait, and gives the packets in them.
func (b *backlog) write(leave int) (packets int) {
	for b.waiting > leave {
		packets += b.take().packets
		b.done()
	}
	return packets
}

func TestOrderAndFormOfWhatWaits(t *testing.T) {
	b := backlog{spare: newBlocks()}
	for i := range 100 {
		b.put(FrameOf(7, 1), bytes.Repeat([]byte{byte(i)}, 1+10*i), start)
	}
	var all []byte
	for b.waiting > 0 {
		all = append(all, b.take().bytes...)
		b.done()
	}
	for i := range 100 {
		length := int(binary.BigEndian.Uint16(all))
		if want := bytes.Repeat([]byte{byte(i)}, 1+10*i); !bytes.Equal(all[2:2+length], want) {
			t.Fatalf("packet %d has %d bytes, want %d", i, length, len(want))
		}
		all = all[2+length:]
	}
	if len(all) > 0 || b.dropped > 0 {
		t.Errorf("%d bytes are left, %d packets were left out", len(all), b.dropped)
	}
}

// TestWholeFramesAreLeftOutAndSoundLast: of pictures a frame that has begun is finished, none begins while much waits, and sound has
// room left then.
func TestWholeFramesAreLeftOutAndSoundLast(t *testing.T) {
	b := backlog{spare: newBlocks()}
	if n := b.fill(FrameOf(1, 1), 700, start); n != 700 {
		t.Fatalf("%d packets of a frame that has begun were taken, want all", n)
	}
	if n := b.fill(FrameOf(2, 1), 10, start); n != 0 {
		t.Errorf("%d packets of another picture were taken", n)
	}
	if n := b.fill(0, 50, start); n != 50 {
		t.Errorf("%d packets of sound were taken, want 50", n)
	}
	b.write(pictureBytes / 2)
	if n := b.fill(FrameOf(1, 2), 10, start); n != 0 {
		t.Errorf("%d packets of a new frame were taken before all was written", n)
	}
	b.write(0)
	if n := b.fill(FrameOf(1, 2), 10, start); n != 0 {
		t.Errorf("%d packets of a frame were taken whose first was left out", n)
	}
	if n := b.fill(FrameOf(1, 3), 10, start); n != 10 {
		t.Errorf("%d packets of the next frame were taken, want 10", n)
	}
	if b.dropped != 30 {
		t.Errorf("%d packets counted as left out, want 30", b.dropped)
	}
}

// TestAFrameWithoutEnd may not take the room of sound.
func TestAFrameWithoutEnd(t *testing.T) {
	b := backlog{spare: newBlocks()}
	taken := b.fill(FrameOf(1, 1), 5000, start)
	if most := startedBytes / 1000; taken > most || taken < most-10 {
		t.Errorf("%d packets of one frame were taken, want about %d", taken, most)
	}
	if n := b.fill(0, 100, start); n != 100 {
		t.Errorf("%d packets of sound were taken, want 100", n)
	}
	if b.fill(0, 5000, start); b.put(0, make([]byte, 1000), start) || b.waiting > backlogBytes {
		t.Errorf("%d bytes wait, and more is taken", b.waiting)
	}
}

// TestNothingLateIsBegun: what waits for half a second shows that the path is too narrow.
func TestNothingLateIsBegun(t *testing.T) {
	b := backlog{spare: newBlocks()}
	b.fill(FrameOf(1, 1), 20, start)
	if n := b.fill(FrameOf(1, 2), 1, start.Add(pictureAge)); n != 1 {
		t.Error("a frame was left out too early")
	}
	if n := b.fill(FrameOf(1, 3), 1, start.Add(pictureAge+time.Millisecond)); n != 0 {
		t.Error("a frame was begun though another waits for long")
	}
	if b.write(0); b.fill(FrameOf(1, 4), 1, start.Add(time.Hour)) != 1 {
		t.Error("nothing waits, and a frame is left out")
	}
}
