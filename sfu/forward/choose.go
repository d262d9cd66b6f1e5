package forward

import (
	"cmp"
	"slices"
	"strings"

	"github.com/holdfast-rtc/holdfast/sfu/forward/parse"
)

type layerChoice struct {
	rid           string
	height        int // 0 unknown
	alive         bool
	bits          uint64 // a second
	layer         *Layer
	level         Level
	spatial, upTo uint8
}

// ridRank knows customary names.
func ridRank(rid string) int {
	switch strings.ToLower(rid) {
	case "q", "l", "low", "0":
		return 0
	case "h", "m", "mid", "medium", "1":
		return 1
	default:
		return 2
	}
}

func assumedHeight(rid string) int { return 180 << ridRank(rid) }

// ladder sorts in place, lowest first. Layers that are not alive count only when none is.
func ladder(layers []layerChoice) []layerChoice {
	if slices.ContainsFunc(layers, func(c layerChoice) bool { return c.alive }) {
		layers = slices.DeleteFunc(layers, func(c layerChoice) bool { return !c.alive })
	}
	slices.SortStableFunc(layers, func(a, b layerChoice) int { return cmp.Compare(a.effectiveHeight(), b.effectiveHeight()) })
	return layers
}

// reach returns the rungs up to the lowest of at least the wanted height, else all.
func reach(rungs []layerChoice, wanted int) []layerChoice {
	for i, c := range rungs {
		if height := c.effectiveHeight(); height >= wanted || height == rungs[len(rungs)-1].effectiveHeight() {
			if !c.alive {
				return rungs[i : i+1]
			}
			for i+1 < len(rungs) && rungs[i+1].rid == c.rid && rungs[i+1].spatial == c.spatial {
				i++
			}
			return rungs[:i+1]
		}
	}
	return nil
}

func (c layerChoice) effectiveHeight() int {
	if c.height > 0 {
		return c.height
	}
	return assumedHeight(c.rid)
}

func formats(codecs []Codec) []string {
	list := make([]string, len(codecs))
	for i, c := range codecs {
		list[i] = parse.FormatOf(c.MimeType, c.Fmtp)
	}
	return list
}
