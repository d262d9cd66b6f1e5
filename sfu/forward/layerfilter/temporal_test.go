package layerfilter

import (
	"slices"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/sfu/forward/parse"

	"pgregory.net/rapid"
)

type packet struct {
	picture  parse.Picture
	sequence uint32
	arrived  time.Time
}

// drawPictures draws pictures in temporal layers, of up to three packets each.
func drawPictures(t *rapid.T) (pictures [][]*packet) {
	sequence := uint32(1 << 16)
	for i := range rapid.IntRange(1, 60).Draw(t, "pictures") {
		pic := parse.Picture{
			Temporal: rapid.Uint8Range(0, 2).Draw(t, "layer"), Synced: rapid.IntRange(0, 3).Draw(t, "synced") == 0, Opens: rapid.IntRange(0, 3).Draw(t, "opens") == 0,
		}
		if i == 0 {
			pic = parse.Picture{Keyframe: true}
		}
		var packets []*packet
		for n := range rapid.IntRange(1, 3).Draw(t, "packets") {
			p := &packet{sequence: sequence, picture: pic}
			p.picture.Begins = n == 0
			packets = append(packets, p)
			sequence++
		}
		pictures = append(pictures, packets)
	}
	return pictures
}

// TestWhatIsForwardedCanBeDecoded: a picture needs the last one of each temporal layer up to its own; one that is synced only the last of
// the lowest; and none that is later and higher reaches back over one that opens to higher ones.
func TestWhatIsForwardedCanBeDecoded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		wishes := rapid.SampledFrom([]uint8{0, 1, 2, AllTemporal})
		limits := Temporal{Wanted: wishes.Draw(t, "first")}
		limits.Begin(1 << 16)
		var last [3]bool // whether the last picture of a layer can be decoded
		for _, packets := range drawPictures(t) {
			if rapid.IntRange(0, 4).Draw(t, "new wish") == 0 {
				limits.Wanted = wishes.Draw(t, "wanted")
			}
			p := &packets[0].picture
			forwarded := !limits.Drops(p, packets[0].sequence, packets[0].arrived, true)
			decodable := forwarded
			switch {
			case p.Keyframe:
				last = [3]bool{true, true, true}
			case p.Synced && p.Temporal > 0:
				decodable = decodable && last[0]
			default:
				for layer := range p.Temporal + 1 {
					decodable = decodable && last[layer]
				}
			}
			if forwarded && !decodable {
				t.Fatalf("a picture of layer %d is forwarded without what it needs", p.Temporal)
			}
			if !forwarded && (p.Temporal == 0 || p.Temporal <= min(limits.Wanted, limits.Limit())) {
				t.Fatalf("a picture of layer %d is left out, wanted %d", p.Temporal, limits.Wanted)
			}
			last[p.Temporal] = decodable
			if p.Opens {
				for layer := int(p.Temporal) + 1; layer < len(last); layer++ {
					last[layer] = decodable
				}
			}
		}
	})
}

// TestAPictureIsForwardedOrLeftOutAsOne, in whatever order its packets come.
func TestAPictureIsForwardedOrLeftOutAsOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		wishes := rapid.SampledFrom([]uint8{0, 1, 2, AllTemporal})
		limits := Temporal{Wanted: wishes.Draw(t, "first")}
		limits.Begin(1 << 16)
		var arriving []*packet
		numbers := make(map[*packet]int)
		for i, packets := range drawPictures(t) {
			for _, p := range packets {
				numbers[p] = i
				at := len(arriving)
				if i > 0 && rapid.IntRange(0, 4).Draw(t, "displaced") == 0 {
					at = max(1, at-rapid.IntRange(0, 4).Draw(t, "by"))
				}
				arriving = slices.Insert(arriving, at, p)
			}
		}
		decided, ahead := make(map[int]bool), uint32(0)
		for _, p := range arriving {
			if rapid.IntRange(0, 9).Draw(t, "new wish") == 0 {
				limits.Wanted = wishes.Draw(t, "wanted")
			}
			dropped := limits.Drops(&p.picture, p.sequence, p.arrived, p.sequence > ahead)
			ahead = max(ahead, p.sequence)
			if before, known := decided[numbers[p]]; known && before != dropped {
				t.Fatalf("of picture %d one packet is left out, and another is not", numbers[p])
			}
			decided[numbers[p]] = dropped
		}
	})
}
