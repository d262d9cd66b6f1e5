package portrait

import (
	"bytes"
	"slices"
	"testing"
	"time"
)

// TestEveryClipIsThere with a frame for each pose: a keyframe of the right size first, and no other one.
func TestEveryClipIsThere(t *testing.T) {
	total := 0
	for person := range Faces {
		for _, codec := range []Codec{VP8, VP9} {
			for _, size := range Sizes() {
				clip, err := Open(person, codec, size)
				if err != nil {
					t.Fatal(err)
				}
				for number, frame := range clip {
					total += len(frame)
					// The inverse key_frame bit of VP8, and frame_type of VP9's profile 0.
					key := frame[0]&1 == 0
					if codec == VP9 {
						key = frame[0]&0x04 == 0
					}
					if key != (number == 0) {
						t.Errorf("frame %d of %s is a keyframe: %t", number, Name(person, codec, size), key)
					}
				}
			}
		}
	}
	if total > 800_000 {
		t.Errorf("the clips have %d bytes", total)
	}
}

// TestAFaceLives: over ten seconds a silent face blinks and moves, with its mouth closed, and a speaking one moves its mouth.
func TestAFaceLives(t *testing.T) {
	for person := range Faces {
		var still, talking []int
		for at := time.Duration(0); at < 10*time.Second; at += 50 * time.Millisecond {
			still, talking = append(still, At(person, at, false)), append(talking, At(person, at, true))
		}
		count := func(numbers []int, holds func(pose) bool) (n int) {
			for _, number := range numbers {
				if number == 0 {
					t.Fatal("the keyframe is shown as a pose")
				}
				if holds(poses[number]) {
					n++
				}
			}
			return n
		}
		open := func(p pose) bool { return p.mouth > 0 }
		blinks := func(p pose) bool { return p.blink }
		if count(still, open) > 0 || count(still, blinks) == 0 || len(slices.Compact(slices.Clone(still))) < 10 {
			t.Errorf("the silent person %d has the poses %v", person, still)
		}
		if count(talking, open) < len(talking)/2 {
			t.Errorf("the speaking person %d has the poses %v", person, talking)
		}
	}
}

// TestFacesDiffer, and each pose from the next.
func TestFacesDiffer(t *testing.T) {
	var seen [][]byte
	for person := range Faces {
		for _, number := range []int{0, 1, 2, 3, 4, 5} {
			drawn := newCanvas(160, 90)
			looks[person].drawRoom(drawn)
			looks[person].drawHead(drawn, float64(poses[number].sway)*swayStep, poses[number])
			for _, other := range seen {
				if bytes.Equal(other, drawn.Pix) {
					t.Errorf("pose %d of person %d looks like another", number, person)
				}
			}
			seen = append(seen, drawn.Pix)
		}
	}
}

func TestNamesDiffer(t *testing.T) {
	var all []string
	for person := range 300 {
		all = append(all, PersonName(person))
	}
	slices.Sort(all)
	if len(slices.Compact(all)) != 300 || PersonName(0) != "Grace Hopper" || PersonName(24) != "Grace Hopper 2" {
		t.Errorf("300 people are named %v", all)
	}
}

func FuzzReadIVF(f *testing.F) {
	f.Add(IVF(VP8, Sizes()[0], Clip{{1, 2}, {3}}))
	f.Add([]byte("DKIF"))
	f.Fuzz(func(t *testing.T, content []byte) {
		clip, err := ReadIVF(content)
		if err != nil {
			return
		}
		again, err := ReadIVF(IVF(VP9, Sizes()[0], clip))
		if err != nil || !slices.EqualFunc(again, clip, bytes.Equal) {
			t.Fatalf("%x is read as %x, and then as %x: %v", content, clip, again, err)
		}
	})
}
