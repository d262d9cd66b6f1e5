package descriptor

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"testing"
)

// What Chromium sends with the first keyframe of a picture of 960 x 540.
const (
	l1t3    = "800001800214eaa860414d141020842703bf021b"
	l2t2    = "800001c003187aaaf130a0a014d141382304600864222226501df010d03bf021b3"
	l3t3Key = "c00001c0081485214eaaaaa8000600004000100002aa80a8000600004000100002a000a800060000400016d549241b5524906d54923157e001974ca864330e222396eca8655304224390eca8775300ef008601df010d03bf021b0380"
	// all of l3t3Key is active
	l3t3All = "c00002c0081485214eaaaaa8000600004000100002aa80a8000600004000100002a000a800060000400016d549241b5524906d54923157e001974ca864330e222396eca8655304224390eca8775300ef008601df010d03bf021bff80"
)

func raw(t testing.TB, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func read(t *testing.T, r *Reader, text string) Frame {
	t.Helper()
	var f Frame
	if err := r.Read(raw(t, text), &f); err != nil {
		t.Fatal(text, err)
	}
	return f
}

// TestWhatChromiumSends has three codecs' worth of modes: temporal layers, full and key-only spatial ones.
func TestWhatChromiumSends(t *testing.T) {
	type want struct {
		text                                  string
		first, last, key                      bool
		number                                uint16
		layer                                 Layer
		active, present, discardable, switchs uint32
		references                            []uint16
	}
	for name, stream := range map[string][]want{
		"L1T3": {
			{l1t3, true, false, true, 1, Layer{0, 0}, 7, 7, 0, 7, nil},
			{"400001", false, true, false, 1, Layer{0, 0}, 7, 7, 0, 7, nil},
			{"830002", true, false, false, 2, Layer{0, 2}, 7, 4, 4, 0, []uint16{1}},
			{"820003", true, false, false, 3, Layer{0, 1}, 7, 6, 2, 4, []uint16{2}},
			{"c40004", true, true, false, 4, Layer{0, 2}, 7, 4, 4, 0, []uint16{1}},
			{"810005", true, false, false, 5, Layer{0, 0}, 7, 7, 0, 7, []uint16{4}},
		},
		"L2T2, with custom references and chains": {
			{l2t2, true, false, true, 1, Layer{0, 0}, 3, 15, 0, 15, nil},
			{"c200025fa0008080", true, true, false, 2, Layer{0, 1}, 15, 10, 2, 0, []uint16{1}},
			{"8100035fa2010100", true, false, false, 3, Layer{0, 0}, 15, 15, 0, 3, []uint16{2}},
			{"0100031a201010", false, false, false, 3, Layer{0, 0}, 15, 15, 0, 3, []uint16{2}},
		},
		"L3T3_KEY": {
			{l3t3Key, true, true, true, 1, Layer{0, 0}, 7, 511, 0, 511, nil},
			{"c300021a00080000", true, true, false, 2, Layer{0, 2}, 7, 4, 4, 0, []uint16{1}},
			{l3t3All, true, true, true, 2, Layer{0, 0}, 511, 511, 0, 511, nil},
			{"c50003", true, true, false, 3, Layer{1, 0}, 511, 504, 0, 504, []uint16{1}},
			{"8c0009", true, false, false, 9, Layer{2, 1}, 511, 384, 128, 256, []uint16{6}},
		},
	} {
		var r Reader
		for _, w := range stream {
			f := read(t, &r, w.text)
			got := want{w.text, f.First, f.Last, f.Keyframe, f.Number, Layer{f.Spatial, f.Temporal}, f.Active, f.Present, f.Discardable, f.Switch, nil}
			if w.references = slices.Clip(w.references); !f.Known || !slices.Equal(f.References(), w.references) {
				t.Errorf("%s: %s refers to %v, known %v", name, w.text, f.References(), f.Known)
			}
			w.references = nil
			if !equal(got.present == w.present, got.first == w.first, got.last == w.last, got.key == w.key, got.number == w.number, got.layer == w.layer,
				got.active == w.active, got.discardable == w.discardable, got.switchs == w.switchs) {
				t.Errorf("%s:\n%+v, want\n%+v", name, got, w)
			}
		}
	}
}

func equal(all ...bool) bool { return !slices.Contains(all, false) }

func TestStructure(t *testing.T) {
	var r Reader
	s := read(t, &r, l3t3Key).Structure
	if s.TargetCount() != 9 || s.SpatialLayers() != 3 || s.Target(5) != (Layer{1, 2}) {
		t.Errorf("%d targets, %d spatial layers, target 5 of %+v", s.TargetCount(), s.SpatialLayers(), s.Target(5))
	}
	for i, want := range []Resolution{{240, 135}, {480, 270}, {960, 540}} {
		if s.Resolution(i) != want {
			t.Errorf("layer %d is of %v, want %v", i, s.Resolution(i), want)
		}
	}
	if read(t, &r, l3t3All).Structure != s {
		t.Error("the same structure was kept twice")
	}
}

// TestPacketsOfTheStructureBefore come late, and those of none are told apart.
func TestPacketsOfTheStructureBefore(t *testing.T) {
	var r Reader
	if f := read(t, &r, "c50003"); f.Known || f.Number != 3 || !f.Last {
		t.Errorf("without a structure: %+v", f)
	}
	first := read(t, &r, l3t3Key).Structure
	moved := raw(t, l1t3)
	moved[0] |= 20 // the template's id, and below the structure's offset
	moved[3], moved[4] = moved[3]|20>>3&7, moved[4]|20<<5&0xFF
	second := read(t, &r, hex.EncodeToString(moved)).Structure
	if first == second || read(t, &r, "c50003").Structure != first || read(t, &r, "d50003").Structure != second {
		t.Error("templates of two structures were mixed up")
	}
	if f := read(t, &r, "e80003"); f.Known {
		t.Error("a template of no structure is known")
	}
}

// TestLateFramesSayNothingOfWhatIsActive: a frame that was sent again is older than the keyframe that made more active.
func TestLateFramesSayNothingOfWhatIsActive(t *testing.T) {
	var r Reader
	read(t, &r, l2t2)
	read(t, &r, "c200025fa0008080")
	late := raw(t, "c20001"+"4c") // number 1, active: 1100
	late = append(late, 0)
	var f Frame
	if err := r.Read(late, &f); err != nil || f.Active != 15 {
		t.Errorf("%v, %b are active", err, f.Active)
	}
}

// TestALateKeyframeSaysNothingOfWhatIsActive: it was sent again, after a frame that made less active.
func TestALateKeyframeSaysNothingOfWhatIsActive(t *testing.T) {
	var r Reader
	read(t, &r, l3t3Key)
	if f := read(t, &r, "c50003"+"401c"); f.Active != 7 {
		t.Fatalf("%b are active, want the lowest three", f.Active)
	}
	if late := read(t, &r, l3t3All); !late.Keyframe || late.Number != 2 {
		t.Fatalf("%+v is no keyframe before frame 3", late)
	}
	if f := read(t, &r, "c50004"); f.Active != 7 {
		t.Errorf("%b are active, want the lowest three", f.Active)
	}
}

// TestWhatIsActiveChangesAfterAnyTime: numbers wrap in minutes, and no frame between says what is active.
func TestWhatIsActiveChangesAfterAnyTime(t *testing.T) {
	for _, number := range []uint16{3, 2 + 1<<14, 1<<15 + 1, 1<<15 + 2, 1<<15 + 3, 3 << 14} {
		var r Reader
		read(t, &r, l3t3All) // number 2
		if f := read(t, &r, fmt.Sprintf("c5%04x401c", number)); f.Active != 7 {
			t.Errorf("at frame %d %b are active, want the lowest three", number, f.Active)
		}
	}
}

func TestMalformed(t *testing.T) {
	var r Reader
	var f Frame
	read(t, &r, l3t3Key)
	whole := raw(t, l3t3Key)
	for n := range len(whole) - 1 {
		if err := (&Reader{}).Read(whole[:n], &f); n != mandatoryBytes && !errors.Is(err, ErrMalformed) {
			t.Errorf("%d of %d bytes: %v", n, len(whole), err)
		}
	}
	endless := append(raw(t, "800001"), 0x80)
	endless = append(endless, make([]byte, 200)...) // templates without end
	cases := map[string][]byte{
		"no template of its own": raw(t, "c500018000e0"), "templates without end": endless, "too long": make([]byte, MaxBytes+1),
		"references without end": append(raw(t, "85000317"), slices.Repeat([]byte{0xFF}, 100)...),
	}
	for name, b := range cases {
		if err := r.Read(b, &f); !errors.Is(err, ErrMalformed) || f.Known {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := read(t, &r, "c50003"); got.Structure.SpatialLayers() != 3 || got.Active != 7 {
		t.Error("something malformed has changed the stream")
	}
}

// FuzzRead reads two descriptors after one of Chromium's. Whatever they are, what comes out is within the bounds.
func FuzzRead(f *testing.F) {
	for _, text := range []string{l1t3, l2t2, l3t3Key, l3t3All, "c200025fa0008080", "8100035fa2010100", "c50003"} {
		f.Add(raw(f, text), raw(f, "c50003"))
		f.Add(raw(f, "c300021a00080000"), raw(f, text))
	}
	f.Add(raw(f, "c500018000e0"), raw(f, "c50003")) // lacks its own template
	// A structure of many targets, in a frame of the structure before.
	f.Add([]byte("0"), []byte("A00\x9d\x9d,00000000000000000000000B0\x00"))
	f.Fuzz(func(t *testing.T, first, second []byte) {
		var r Reader
		for _, b := range [][]byte{raw(t, l3t3Key), first, second, first} {
			var frame Frame
			if err := r.Read(b, &frame); err != nil || !frame.Known {
				if frame.Known || frame.Keyframe || frame.Structure != nil && err != nil {
					t.Fatalf("%v and %+v", err, frame)
				}
				continue
			}
			s := frame.Structure
			if s.TargetCount() > MaxTargets || s.SpatialLayers() > MaxLayers || frame.Spatial >= MaxLayers || frame.Temporal >= MaxLayers {
				t.Fatalf("beyond the bounds: %+v", frame)
			}
			all := frame.Present | frame.Active
			if bits.Len32(all) > s.TargetCount() || (frame.Discardable|frame.Switch)&^frame.Present != 0 || frame.Discardable&frame.Switch != 0 {
				t.Fatalf("contradictions: %+v", frame)
			}
			for d := range Targets(frame.Present) {
				s.Target(d)
			}
			for _, back := range frame.References() {
				if back == 0 || back > 4096 {
					t.Fatalf("refers back by %d", back)
				}
			}
		}
	})
}
