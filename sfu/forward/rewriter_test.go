package forward

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
			r := newRewriter(math.MaxUint16-1, 5, 16)
			r.begin(1, payloadTypes{}, &incoming{sequence: 10}, 0)
			for i, s := range steps {
				out, ok := r.rewrite(&incoming{sequence: s.sequence, empty: s.empty})
				if ok != (s.want >= 0) || ok && out.sequence != uint16(math.MaxUint16+s.want) {
					t.Fatalf("step %d: %d %v", i, out.sequence, ok)
				}
			}
		})
	}
}

type written struct {
	layer uint64
	in    incoming
	out   outgoing
}

// TestRewriterProperties sends any mix of loss, reordering, duplicates, padding
// and switches through a rewriter.
func TestRewriterProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const memory = 64
		r := newRewriter(rapid.Uint16().Draw(t, "first"), rapid.Uint32().Draw(t, "timestamp"), memory)
		var history []written
		for layer := uint64(1); layer <= uint64(rapid.IntRange(1, 12).Draw(t, "segments")); layer++ {
			packets := drawSegment(t)
			before := r
			r.begin(layer, payloadTypes{media: uint8(layer)}, &packets[0], 90)
			for i, p := range packets {
				out, ok := r.rewrite(&p)
				if !ok {
					continue
				}
				w := written{layer: layer, in: p, out: out}
				if i == 0 && (out.sequence != uint16(before.highest+1) || out.timestamp != before.timestamp+90 ||
					out.pictureID != before.pictureID+1 || out.tl0 != before.tl0+1) {
					t.Fatal("a switch does not go on where the stream was:", out, before.highest)
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
func drawSegment(t *rapid.T) []incoming {
	sequence := rapid.Uint32Range(1<<16, 1<<20).Draw(t, "sequence")
	timestamp, picture := rapid.Uint32().Draw(t, "segment timestamp"), rapid.Uint16().Draw(t, "picture")
	packets := []incoming{{sequence: sequence, timestamp: timestamp, pictureID: picture, tl0: uint8(picture)}}
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
			packets = append(packets, incoming{sequence: sequence, timestamp: timestamp, empty: true})
			continue
		}
		p := incoming{sequence: sequence, timestamp: timestamp, pictureID: picture, tl0: uint8(picture)}
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
	if a.out.sequence == b.out.sequence {
		t.Fatalf("number %d written for %v and %v", a.out.sequence, a, b)
	}
	if a.layer != b.layer {
		if int16(b.out.sequence-a.out.sequence) < 0 {
			t.Fatalf("a later layer before an earlier one: %v, %v", a, b)
		}
		return
	}
	in, out := int32(b.in.sequence-a.in.sequence), int32(int16(b.out.sequence-a.out.sequence))
	if (in < 0) != (out < 0) || max(out, -out) > max(in, -in) {
		t.Fatalf("order or distance not kept: %v, %v", a, b)
	}
	if b.out.timestamp-a.out.timestamp != b.in.timestamp-a.in.timestamp ||
		b.out.pictureID-a.out.pictureID != b.in.pictureID-a.in.pictureID ||
		b.out.tl0-a.out.tl0 != b.in.tl0-a.in.tl0 {
		t.Fatalf("distance of timestamps or pictures not kept: %v, %v", a, b)
	}
}

// checkLookups asks for everything written; what is found must be right, and
// what is recent must be found.
func checkLookups(t *rapid.T, r *rewriter, history []written) {
	newest := history[len(history)-1].layer
	for _, w := range history {
		from, ok := r.lookup(w.out.sequence)
		if !ok {
			if back := uint16(r.highest) - w.out.sequence; int(back) < len(r.sent) && newest-w.layer < keptSegments {
				t.Fatalf("forgot %v", w)
			}
			continue
		}
		if from.segment.layer != w.layer || from.sequence != w.in.sequence || from.segment.apply(&w.in, w.out.sequence, from.place.picture) != w.out {
			t.Fatalf("found %+v for %v", from, w)
		}
	}
}

// TestRewriterLeavesNoHole: padding anywhere, nothing lost, gives numbers
// without a gap.
func TestRewriterLeavesNoHole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := newRewriter(rapid.Uint16().Draw(t, "first"), 0, 16)
		next := uint16(r.highest + 1)
		sequence := uint32(1 << 17)
		for layer := range rapid.IntRange(1, 5).Draw(t, "switches") {
			r.begin(uint64(layer), payloadTypes{}, &incoming{sequence: sequence}, 1)
			for _, empty := range rapid.SliceOfN(rapid.Bool(), 1, 100).Draw(t, "padding") {
				out, ok := r.rewrite(&incoming{sequence: sequence, empty: empty})
				sequence++
				if ok == empty || ok && out.sequence != next {
					t.Fatal(out.sequence, next)
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
		r := newRewriter(65530, 1, 16)
		tracker := sequenceTracker{}
		sequence := uint16(65500)
		seen := make(map[uint16]int)
		for i, b := range script {
			sequence += uint16(int8(b<<2) >> 2) // -32 to 31
			if b == 0xFF {
				sequence += 20000
			}
			extended, ok := tracker.extend(sequence)
			if !ok {
				continue
			}
			in := incoming{sequence: extended, timestamp: uint32(i), pictureID: uint16(i / 3), empty: b&0xC0 == 0x40, dropped: b&0xC0 == 0x80, gapless: true}
			if r.count == 0 || b&0xC0 == 0xC0 {
				r.begin(uint64(i), payloadTypes{}, &in, 1)
			}
			out, ok := r.rewrite(&in)
			if !ok {
				continue
			}
			if at, twice := seen[out.sequence]; twice && i-at < 1<<15 {
				t.Fatalf("number %d written at step %d and %d", out.sequence, at, i)
			}
			seen[out.sequence] = i
			from, ok := r.lookup(out.sequence)
			if out.filler {
				extended = 0 // It is not sent again.
			}
			if !ok || from.sequence != extended || out.filler != in.dropped {
				t.Fatalf("step %d: %+v was just written, and %+v is found", i, out, from)
			}
		}
	})
}

// TestSegmentsAreForgotten: what went out before the last switches that are
// remembered is not found, rather than found in the wrong one.
func TestSegmentsAreForgotten(t *testing.T) {
	r := newRewriter(0, 0, 64)
	for layer := range uint64(keptSegments + 3) {
		p := incoming{sequence: 1<<16 + uint32(layer)*100}
		r.begin(layer, payloadTypes{}, &p, 1)
		if _, ok := r.rewrite(&p); !ok {
			t.Fatal("not written")
		}
	}
	for layer := range uint64(keptSegments + 3) {
		from, ok := r.lookup(uint16(layer + 1))
		if ok != (layer >= 3) || ok && from.segment.layer != layer {
			t.Fatalf("layer %d: %v %+v", layer, ok, from)
		}
	}
}
