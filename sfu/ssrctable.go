package sfu

import (
	"cmp"
	"maps"

	"github.com/pion/rtp"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/sfu/offer"
)

// maxNamedStreams bounds the SSRCs of a client that are remembered: three layers of camera and of screen, each with
// retransmissions, are 12, and a client that moves names them again.
const maxNamedStreams = 128

// identity is which encoding of which m-line an SSRC carries.
type identity struct {
	mid, rid string
	repairs  bool // the retransmissions of it
}

// ssrcTable knows which encoding an SSRC of a client carries: from the offer, from header extensions, or from the client's word.
type ssrcTable struct {
	ids     offer.Extensions
	known   map[uint32]identity
	repairs map[uint32]uint32 // SSRCs of retransmissions that the offer declares, and what they repair
}

func newSSRCTable() ssrcTable {
	return ssrcTable{known: map[uint32]identity{}, repairs: map[uint32]uint32{}}
}

// learn takes over what the client says its senders' SSRCs are. Browsers stop sending the MID and RID extensions once receiver
// reports have acknowledged an SSRC, so a node that a connection moves to would not know which layer a packet is of.
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

// declared takes over the SSRCs of an m-line. What is known of one already stays.
func (t *ssrcTable) declared(line *offer.Section) {
	for _, ssrc := range line.SSRCs {
		if _, named := t.known[ssrc]; !named && len(t.known) < maxNamedStreams {
			_, repairs := line.Repairs[ssrc]
			t.known[ssrc] = identity{mid: line.MID, repairs: repairs}
		}
	}
	maps.Copy(t.repairs, line.Repairs)
}

// learnExtensions takes over the ids of an m-line: with BUNDLE an id means the same on all of them (RFC 8843 section 9.1).
func (t *ssrcTable) learnExtensions(ids *offer.Extensions) {
	t.ids.MID = cmp.Or(ids.MID, t.ids.MID)
	t.ids.RID = cmp.Or(ids.RID, t.ids.RID)
	t.ids.RepairedRID = cmp.Or(ids.RepairedRID, t.ids.RepairedRID)
	t.ids.TransportCC = cmp.Or(ids.TransportCC, t.ids.TransportCC)
}

// identify says which encoding a packet is of: as its header extensions say, or as the client said.
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
			t.known[header.SSRC] = who // It will not be said again.
		}
		return who, true
	}
	return who, known
}

// namedVideo lists the SSRCs of the video that the client says it has been
// sending: they can be asked for keyframes before their first packet.
func namedVideo(senders []*control.Sender) []uint32 {
	var ssrcs []uint32
	for _, s := range senders {
		if s.GetSource() != control.Source_SOURCE_MICROPHONE && s.GetSsrc() != 0 && len(ssrcs) < maxNamedStreams {
			ssrcs = append(ssrcs, s.GetSsrc())
		}
	}
	return ssrcs
}
