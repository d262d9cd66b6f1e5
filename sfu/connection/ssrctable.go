package connection

import (
	"cmp"
	"maps"

	"github.com/pion/rtp"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/sfu/offer"
)

// maxNamedStreams is how many SSRCs a client may name.
const maxNamedStreams = 128

// identity says which encoding an SSRC is of, and whether it repeats lost packets of the encoding (RTX).
type identity struct {
	mid, rid string
	repairs  bool
}

// ssrcTable says what the client's SSRCs are.
type ssrcTable struct {
	ids   offer.Extensions
	known map[uint32]identity
	// repairs has the SSRC that each RTX SSRC repeats, where the offer says so.
	repairs map[uint32]uint32
}

func newSSRCTable() ssrcTable {
	return ssrcTable{known: map[uint32]identity{}, repairs: map[uint32]uint32{}}
}

// learn takes the client's word for its SSRCs. Browsers omit the MID and RID extensions once an SSRC is acknowledged, so that after a
// move only the client can say what it is.
func (t *ssrcTable) learn(senders []*control.Sender) {
	for _, s := range senders {
		if s.GetMid() == "" || len(s.GetMid()) > maxMidBytes || len(t.known)+2 > maxNamedStreams {
			continue
		}
		if ssrc := s.GetSsrc(); ssrc != 0 {
			t.known[ssrc] = identity{mid: s.GetMid(), rid: s.GetRid()}
		}
		if ssrc := s.GetRtxSsrc(); ssrc != 0 {
			t.known[ssrc] = identity{mid: s.GetMid(), rid: s.GetRid(), repairs: true}
		}
	}
}

// declared takes over the SSRCs of an m-line, where the client itself has not named them.
func (t *ssrcTable) declared(line *offer.Section) {
	for _, ssrc := range line.SSRCs {
		if _, named := t.known[ssrc]; !named && len(t.known) < maxNamedStreams {
			_, repairs := line.Repairs[ssrc]
			t.known[ssrc] = identity{mid: line.MID, repairs: repairs}
		}
	}
	maps.Copy(t.repairs, line.Repairs)
}

// learnExtensions takes over an m-line's ids. With BUNDLE an id means the same on all m-lines (RFC 8843 section 9.1).
func (t *ssrcTable) learnExtensions(ids *offer.Extensions) {
	t.ids.MID = cmp.Or(ids.MID, t.ids.MID)
	t.ids.RID = cmp.Or(ids.RID, t.ids.RID)
	t.ids.RepairedRID = cmp.Or(ids.RepairedRID, t.ids.RepairedRID)
	t.ids.TransportCC = cmp.Or(ids.TransportCC, t.ids.TransportCC)
}

// identify goes by the header extensions, or without them by what is known of the SSRC.
func (t *ssrcTable) identify(header *rtp.Header) (identity, bool) {
	value := func(id uint8) string {
		if id == 0 {
			return ""
		}
		return string(header.GetExtension(id))
	}
	who, known := t.known[header.SSRC]
	if mid := value(t.ids.MID); mid != "" {
		who = identity{mid: mid, rid: value(t.ids.RID)}
		if repaired := value(t.ids.RepairedRID); repaired != "" {
			who.rid, who.repairs = repaired, true
		}
		if !known && len(t.known) < maxNamedStreams {
			t.known[header.SSRC] = who
		}
		return who, true
	}
	return who, known
}

// namedVideo returns the SSRCs of pictures that the client named. They can be asked for keyframes before their first packet.
func namedVideo(senders []*control.Sender) []uint32 {
	var ssrcs []uint32
	for _, s := range senders {
		if s.GetSource() != control.Source_SOURCE_MICROPHONE && s.GetSsrc() != 0 && len(ssrcs) < maxNamedStreams {
			ssrcs = append(ssrcs, s.GetSsrc())
		}
	}
	return ssrcs
}
