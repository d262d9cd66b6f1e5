package sfu

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/pion/interceptor"
	"github.com/pion/rtp"
	"github.com/pion/sdp/v3"
	"github.com/pion/webrtc/v4"

	"github.com/holdfast-rtc/holdfast/control"
)

// handoverPackets is how many packets of a named SSRC get the identifiers. Pion
// looks at 10 packets before it gives up on an SSRC and RTX padding does not count,
// so a few more are named; after that nobody looks.
const handoverPackets = 64

// maxHandoverSSRCs bounds the table: three layers of camera and of screen,
// each with RTX, are 12. What does not fit is not named, and such a stream waits
// for the browser to name it.
const maxHandoverSSRCs = 64

// identity is what the RTP header extensions would say of a stream.
type identity struct {
	mid, rid, rrid string
}

// handover gives the first packets of streams that another node knew the MID and
// RID header extensions, which browsers stop sending once receiver reports have
// acknowledged an SSRC. Without them Pion cannot tell which layer of
// which m-line a packet is, and drops the stream. It is one connection's
// interceptor and its own factory.
type handover struct {
	interceptor.NoOp

	mu      sync.Mutex // guards the fields below
	streams map[uint32]identity
	repairs map[uint32]uint32       // the SSRCs of retransmissions that the offer declares, and what they repair
	bound   map[uint32]*boundStream // SSRCs whose packets Pion reads; those of no track are unplaced
}

func newHandover() *handover {
	return &handover{streams: map[uint32]identity{}, repairs: map[uint32]uint32{}, bound: map[uint32]*boundStream{}}
}

// NewInterceptor is part of interceptor.Factory.
func (h *handover) NewInterceptor(string) (interceptor.Interceptor, error) { return h, nil }

// learn takes over what the client says its senders' SSRCs are. Senders without
// a RID are announced with a=ssrc lines and need no help.
func (h *handover) learn(senders []*control.Sender) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range senders {
		if s.GetRid() == "" || s.GetMid() == "" || len(h.streams)+2 > maxHandoverSSRCs {
			continue
		}
		if ssrc := s.GetSsrc(); ssrc != 0 {
			h.streams[ssrc] = identity{mid: s.GetMid(), rid: s.GetRid()}
		}
		if ssrc := s.GetRtxSsrc(); ssrc != 0 {
			h.streams[ssrc] = identity{mid: s.GetMid(), rrid: s.GetRid()}
		}
	}
}

// BindRemoteStream is part of interceptor.Interceptor.
func (h *handover) BindRemoteStream(info *interceptor.StreamInfo, reader interceptor.RTPReader) interceptor.RTPReader {
	h.mu.Lock()
	who, ok := h.streams[info.SSRC]
	if original := h.bound[h.repairs[info.SSRC]]; original != nil {
		h.mu.Unlock()
		return &repairReader{reader: reader, original: original}
	}
	if len(h.bound) < maxHandoverSSRCs && !strings.EqualFold(info.MimeType, webrtc.MimeTypeRTX) {
		stream := &boundStream{reader: reader, codec: info.MimeType}
		h.bound[info.SSRC] = stream
		reader = stream
	}
	h.mu.Unlock()
	if !ok {
		return reader
	}
	named := &namingReader{reader: reader, left: handoverPackets}
	for _, extension := range info.RTPHeaderExtensions {
		id := uint8(extension.ID) // 1 to 14, or up to 255 with two-byte headers
		switch {
		case extension.URI == sdp.SDESMidURI:
			named.add(id, who.mid)
		case extension.URI == sdp.SDESRTPStreamIDURI && who.rid != "":
			named.add(id, who.rid)
		case extension.URI == sdp.SDESRepairRTPStreamIDURI && who.rrid != "":
			named.add(id, who.rrid)
		}
	}
	return named
}

// boundStream is one SSRC that Pion reads packets of. It counts them until they are in a track.
type boundStream struct {
	reader  interceptor.RTPReader
	codec   string
	packets atomic.Uint64
	placed  atomic.Bool
}

// Read is part of interceptor.RTPReader.
func (s *boundStream) Read(b []byte, a interceptor.Attributes) (int, interceptor.Attributes, error) {
	n, a, err := s.reader.Read(b, a)
	if err == nil && !s.placed.Load() {
		s.packets.Add(1)
	}
	return n, a, err
}

// learnRepairs takes over which SSRCs an offer declares to be the retransmissions of which.
func (h *handover) learnRepairs(offer string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for line := range strings.Lines(offer) {
		group, ok := strings.CutPrefix(line, "a=ssrc-group:FID ")
		if !ok || len(h.repairs) >= maxHandoverSSRCs {
			continue
		}
		var original, repair uint32
		if _, err := fmt.Sscan(group, &original, &repair); err == nil {
			h.repairs[repair] = original
		}
	}
}

// repairReader holds back the retransmissions of a stream until a packet of the stream itself has been read. Pion gives them
// the payload type of the stream, which it does not know before; if such a packet is the first that it looks
// at, it knows no codec for it and never announces the track. Browsers probe a new path with
// retransmissions, so one may well be the first packet after a move. Nothing is lost: such a probe repeats what another node got.
type repairReader struct {
	reader   interceptor.RTPReader
	original *boundStream
}

// Read is part of interceptor.RTPReader. Pion passes over what has no bytes.
func (r *repairReader) Read(b []byte, a interceptor.Attributes) (int, interceptor.Attributes, error) {
	n, a, err := r.reader.Read(b, a)
	if err == nil && r.original.packets.Load() == 0 {
		return 0, a, nil
	}
	return n, a, err
}

// place notes that the packets of an SSRC are in a track.
func (h *handover) place(ssrc uint32) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s := h.bound[ssrc]; s != nil {
		s.placed.Store(true)
	}
}

// unplaced are the streams of which packets have come and which are in no track.
func (h *handover) unplaced() []*control.Stream {
	h.mu.Lock()
	defer h.mu.Unlock()
	var streams []*control.Stream
	for ssrc, s := range h.bound {
		if n := s.packets.Load(); n > 0 && !s.placed.Load() {
			streams = append(streams, &control.Stream{Ssrc: ssrc, Packets: n, Codec: s.codec})
		}
	}
	slices.SortFunc(streams, func(a, b *control.Stream) int { return cmp.Compare(a.GetSsrc(), b.GetSsrc()) })
	return streams
}

// namingReader adds extensions to the first packets that are read through it. It
// is read by one goroutine at a time, as every RTP stream is.
type namingReader struct {
	reader     interceptor.RTPReader
	extensions []rtpExtension
	left       int
}

type rtpExtension struct {
	id    uint8
	value []byte
}

func (r *namingReader) add(id uint8, value string) {
	r.extensions = append(r.extensions, rtpExtension{id: id, value: []byte(value)})
}

// Read is part of interceptor.RTPReader. A packet that does not parse, already has
// the extension or does not fit the buffer with it is passed on as it is.
func (r *namingReader) Read(b []byte, a interceptor.Attributes) (int, interceptor.Attributes, error) {
	n, a, err := r.reader.Read(b, a)
	if err != nil || r.left == 0 {
		return n, a, err
	}
	r.left--
	return r.name(b, n), a, nil
}

// name rewrites the packet in b[:n] in place and returns its new length.
func (r *namingReader) name(b []byte, n int) int {
	var packet rtp.Packet
	if err := packet.Unmarshal(b[:n]); err != nil {
		return n
	}
	for _, extension := range r.extensions {
		if packet.GetExtension(extension.id) != nil {
			continue
		}
		if err := packet.SetExtension(extension.id, extension.value); err != nil {
			return n
		}
	}
	if packet.MarshalSize() > len(b) {
		return n
	}
	named, err := packet.Marshal() // The payload aliases b, so not in place.
	if err != nil {
		return n
	}
	return copy(b, named)
}
