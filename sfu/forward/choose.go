package forward

import (
	"cmp"
	"slices"
	"strings"
)

// layerChoice is what the choice between the layers of one source rests on.
type layerChoice struct {
	rid    string
	height int // as last seen in a keyframe, 0 when unknown
	alive  bool
	bits   uint64 // a second, as measured or assumed
	layer  *Layer
}

// ridRank orders simulcast layers that do not say their size: the customary
// names q < h < f, and their synonyms.
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

// assumedHeight stands in for a size that is not known yet.
func assumedHeight(rid string) int { return 180 << ridRank(rid) }

// chooseLayer returns the index of the smallest layer that is at least as high
// as wanted, else of the largest; -1 without layers. Layers that are not alive
// count only when none is. Wanted 0 asks for the lowest.
func chooseLayer(layers []layerChoice, wanted int) int {
	best := -1
	better := func(a, b layerChoice) bool {
		if a.alive != b.alive {
			return a.alive
		}
		ah, bh := a.effectiveHeight(), b.effectiveHeight()
		aEnough, bEnough := ah >= wanted, bh >= wanted
		if aEnough != bEnough {
			return aEnough
		}
		if aEnough {
			return ah < bh
		}
		return ah > bh
	}
	for i := range layers {
		if best < 0 || better(layers[i], layers[best]) {
			best = i
		}
	}
	return best
}

// ladder orders what may be shown of a source, lowest first, and says which of it
// is shown when nothing limits: what is alive and not higher than that.
func ladder(layers []layerChoice, wanted int) (rungs []layerChoice, top int) {
	best := layers[chooseLayer(layers, wanted)]
	rungs = slices.DeleteFunc(layers, func(c layerChoice) bool {
		return c != best && (!c.alive || c.effectiveHeight() >= best.effectiveHeight())
	})
	slices.SortStableFunc(rungs, func(a, b layerChoice) int { return cmp.Compare(a.effectiveHeight(), b.effectiveHeight()) })
	return rungs, len(rungs) - 1
}

func (c layerChoice) effectiveHeight() int {
	if c.height > 0 {
		return c.height
	}
	return assumedHeight(c.rid)
}

// match finds what a subscriber negotiated for a publisher's codec.
func match(negotiated []Codec, published Codec) (payloadTypes, bool) {
	i := slices.IndexFunc(negotiated, func(c Codec) bool {
		return strings.EqualFold(c.MimeType, published.MimeType) && sameFormat(c, published)
	})
	if i < 0 {
		return payloadTypes{}, false
	}
	return payloadTypes{media: negotiated[i].PayloadType, rtx: negotiated[i].RTXPayloadType}, true
}

// sameFormat compares what makes two H264 streams different formats: the
// packetization mode and the profile (the first byte of profile-level-id).
// Level and constraints are what the decoder can take, and browsers take more
// than they say.
func sameFormat(a, b Codec) bool {
	if codecOf(a.MimeType) != codecH264 {
		return true
	}
	mode := func(c Codec) string { return cmp.Or(parameter(c.Fmtp, "packetization-mode"), "0") }
	profile := func(c Codec) string {
		id := cmp.Or(parameter(c.Fmtp, "profile-level-id"), "42") // RFC 6184 section 8.1: Baseline
		return strings.ToLower(id[:min(2, len(id))])
	}
	return mode(a) == mode(b) && profile(a) == profile(b)
}

func parameter(fmtp, name string) string {
	for part := range strings.SplitSeq(fmtp, ";") {
		key, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		if strings.EqualFold(key, name) {
			return value
		}
	}
	return ""
}
