package renumber

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestRewriterTable(t *testing.T) {
	type step struct {
		sequence uint32
		empty    bool
		want     int // number relative to the first one written, -1: not written
	}
	for name, steps := range map[string][]step{
		"in order":             {{10, false, 0}, {11, false, 1}, {12, false, 2}},
		"loss leaves a gap":    {{10, false, 0}, {12, false, 2}},
		"late fills it":        {{10, false, 0}, {12, false, 2}, {11, false, 1}},
		"duplicate":            {{10, false, 0}, {11, false, 1}, {11, false, -1}, {10, false, -1}},
		"before the switch":    {{10, false, 0}, {9, false, -1}, {11, false, 1}},
		"padding closes up":    {{10, false, 0}, {11, true, -1}, {12, true, -1}, {13, false, 1}},
		"late before padding":  {{10, false, 0}, {12, true, -1}, {11, false, 1}, {13, false, 2}},
		"late among paddings":  {{10, false, 0}, {11, true, -1}, {13, true, -1}, {14, false, 2}, {12, false, 1}},
		"late padding":         {{10, false, 0}, {12, false, 2}, {11, true, -1}, {13, false, 3}},
		"padding at the start": {{10, true, -1}, {11, false, 0}, {12, false, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			r := New(math.MaxUint16-1, 5, 16)
			r.Begin(1, PayloadTypes{}, &Incoming{Sequence: 10}, 0)
			for i, s := range steps {
				out, ok := r.Rewrite(&Incoming{Sequence: s.sequence, Empty: s.empty})
				if ok != (s.want >= 0) || ok && out.Sequence != uint16(math.MaxUint16+s.want) {
					t.Fatalf("step %d: %d %v", i, out.Sequence, ok)
				}
			}
		})
	}
}

type written struct {
	layer uint64
	in    Incoming
	out   Outgoing
}

// TestRewriterProperties sends any mix of loss, reordering, duplicates, padding
// and switches through a rewriter.
func TestRewriterProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const memory = 64
		r := New(rapid.Uint16().Draw(t, "first"), rapid.Uint32().Draw(t, "timestamp"), memory)
		var history []written
		for layer := uint64(1); layer <= uint64(rapid.IntRange(1, 12).Draw(t, "segments")); layer++ {
			packets := drawSegment(t)
			before := r
			r.Begin(layer, PayloadTypes{Media: uint8(layer)}, &packets[0], 90)
			for i, p := range packets {
				out, ok := r.Rewrite(&p)
				if !ok {
					continue
				}
				w := written{layer: layer, in: p, out: out}
				if i == 0 && (out.Sequence != uint16(before.Highest+1) || out.Timestamp != before.Timestamp+90 ||
					out.PictureID != before.pictureID+1 || out.TL0 != before.tl0+1) {
					t.Fatal("a switch does not go on where the stream was:", out, before.Highest)
				}
				for _, other := range history {
					checkOrder(t, other, w)
				}
				history = append(history, w)
			}
			checkLookups(t, &r, history)
		}
	})
}

// drawSegment draws the packets of one layer as they arrive, never displaced
// further than a rewriter remembers.
func drawSegment(t *rapid.T) []Incoming {
	sequence := rapid.Uint32Range(1<<16, 1<<20).Draw(t, "sequence")
	timestamp, picture := rapid.Uint32().Draw(t, "segment timestamp"), rapid.Uint16().Draw(t, "picture")
	packets := []Incoming{{Sequence: sequence, Timestamp: timestamp, PictureID: picture, TL0: uint8(picture)}}
	for range rapid.IntRange(0, 60).Draw(t, "packets") {
		sequence++
		if rapid.IntRange(0, 3).Draw(t, "new frame") == 0 {
			timestamp += 3000
			picture++
		}
		switch rapid.IntRange(0, 7).Draw(t, "fate") {
		case 0: // lost
			continue
		case 1:
			packets = append(packets, Incoming{Sequence: sequence, Timestamp: timestamp, Empty: true})
			continue
		}
		p := Incoming{Sequence: sequence, Timestamp: timestamp, PictureID: picture, TL0: uint8(picture)}
		at := len(packets)
		if rapid.IntRange(0, 3).Draw(t, "late") == 0 { // it, or what came before it, is displaced
			at = max(1, at-rapid.IntRange(0, 8).Draw(t, "by"))
		}
		packets = slices.Insert(packets, at, p)
		if rapid.IntRange(0, 7).Draw(t, "twice") == 0 {
			packets = append(packets, p)
		}
	}
	return packets
}

// checkOrder says what must hold between any two packets of a stream.
func checkOrder(t *rapid.T, a, b written) {
	if a.out.Sequence == b.out.Sequence {
		t.Fatalf("number %d written for %v and %v", a.out.Sequence, a, b)
	}
	if a.layer != b.layer {
		if int16(b.out.Sequence-a.out.Sequence) < 0 {
			t.Fatalf("a later layer before an earlier one: %v, %v", a, b)
		}
		return
	}
	in, out := int32(b.in.Sequence-a.in.Sequence), int32(int16(b.out.Sequence-a.out.Sequence))
	if (in < 0) != (out < 0) || max(out, -out) > max(in, -in) {
		t.Fatalf("order or distance not kept: %v, %v", a, b)
	}
	if b.out.Timestamp-a.out.Timestamp != b.in.Timestamp-a.in.Timestamp ||
		b.out.PictureID-a.out.PictureID != b.in.PictureID-a.in.PictureID ||
		b.out.TL0-a.out.TL0 != b.in.TL0-a.in.TL0 {
		t.Fatalf("distance of timestamps or pictures not kept: %v, %v", a, b)
	}
}

// checkLookups asks for everything written; what is found must be right, and
// what is recent must be found.
func checkLookups(t *rapid.T, r *Rewriter, history []written) {
	newest := history[len(history)-1].layer
	for _, w := range history {
		from, ok := r.Lookup(w.out.Sequence)
		if !ok {
			if back := uint16(r.Highest) - w.out.Sequence; int(back) < len(r.sent) && newest-w.layer < keptSegments {
				t.Fatalf("forgot %v", w)
			}
			continue
		}
		if from.Segment.Layer != w.layer || from.Sequence != w.in.Sequence || from.Segment.Apply(&w.in, w.out.Sequence, from.Place.Picture) != w.out {
			t.Fatalf("found %+v for %v", from, w)
		}
	}
}

// TestRewriterLeavesNoHole: padding anywhere, nothing lost, gives numbers
// without a gap.
func TestRewriterLeavesNoHole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := New(rapid.Uint16().Draw(t, "first"), 0, 16)
		next := uint16(r.Highest + 1)
		sequence := uint32(1 << 17)
		for layer := range rapid.IntRange(1, 5).Draw(t, "switches") {
			r.Begin(uint64(layer), PayloadTypes{}, &Incoming{Sequence: sequence}, 1)
			for _, empty := range rapid.SliceOfN(rapid.Bool(), 1, 100).Draw(t, "padding") {
				out, ok := r.Rewrite(&Incoming{Sequence: sequence, Empty: empty})
				sequence++
				if ok == empty || ok && out.Sequence != next {
					t.Fatal(out.Sequence, next)
				}
				if ok {
					next++
				}
			}
		}
	})
}

func FuzzRewriter(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 0x41, 4, 0x82, 5})
	f.Add([]byte{0xC1, 1, 2, 0x81, 0xBF, 2, 0x41, 0xBE, 3})
	f.Fuzz(func(t *testing.T, script []byte) {
		r := New(65530, 1, 16)
		tracker := Tracker{}
		sequence := uint16(65500)
		seen := make(map[uint16]int)
		for i, b := range script {
			sequence += uint16(int8(b<<2) >> 2) // -32 to 31
			if b == 0xFF {
				sequence += 20000
			}
			extended, ok := tracker.Extend(sequence)
			if !ok {
				continue
			}
			in := Incoming{Sequence: extended, Timestamp: uint32(i), PictureID: uint16(i / 3), Empty: b&0xC0 == 0x40, Dropped: b&0xC0 == 0x80, Gapless: true}
			if r.count == 0 || b&0xC0 == 0xC0 {
				r.Begin(uint64(i), PayloadTypes{}, &in, 1)
			}
			out, ok := r.Rewrite(&in)
			if !ok {
				continue
			}
			if at, twice := seen[out.Sequence]; twice && i-at < 1<<15 {
				t.Fatalf("number %d written at step %d and %d", out.Sequence, at, i)
			}
			seen[out.Sequence] = i
			from, ok := r.Lookup(out.Sequence)
			if out.Filler {
				extended = 0 // It is not sent again.
			}
			if !ok || from.Sequence != extended || out.Filler != in.Dropped {
				t.Fatalf("step %d: %+v was just written, and %+v is found", i, out, from)
			}
		}
	})
}

// TestSegmentsAreForgotten: what went out before the last switches that are
// remembered is not found, rather than found in the wrong one.
func TestSegmentsAreForgotten(t *testing.T) {
	r := New(0, 0, 64)
	for layer := range uint64(keptSegments + 3) {
		p := Incoming{Sequence: 1<<16 + uint32(layer)*100}
		r.Begin(layer, PayloadTypes{}, &p, 1)
		if _, ok := r.Rewrite(&p); !ok {
			t.Fatal("not written")
		}
	}
	for layer := range uint64(keptSegments + 3) {
		from, ok := r.Lookup(uint16(layer + 1))
		if ok != (layer >= 3) || ok && from.Segment.Layer != layer {
			t.Fatalf("layer %d: %v %+v", layer, ok, from)
		}
	}
}
