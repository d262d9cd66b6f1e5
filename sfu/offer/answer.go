package offer

import "net/netip"

// Answer holds what an SDP answer contains beside what the offer decides.
type Answer struct {
	SessionID uint64 // of o=; below 1<<63, one for a connection
	Version   uint64 // of o=; grows with each answer
	Ufrag     string
	Password  string
	// Fingerprint is our certificate's: "sha-256 00:11:...".
	Fingerprint string
	Setup       string           // active or passive
	Candidates  []netip.AddrPort // UDP, the preferred first
	// Standby are UDP addresses of another node, which the client prefers as soon as they answer.
	Standby []netip.AddrPort
	// First is the priority of the first address over UDP, and each further one has one less; 0: they have those of RFC 8445 section 5.1.2.1.
	First   uint32
	TCPPort uint16 // passive, at the same addresses (RFC 6544); 0: none
	// CanPublish takes what the client sends; CanSubscribe fills slots. Without it an m-line is inactive: rejection
	// would stop the client's transceiver for good.
	CanPublish, CanSubscribe bool
	// DataBytes is the size of the longest message that the client may send on a data channel; 0: there are no data channels.
	DataBytes int
	// Slots are by mid; a receiving m-line without one is inactive.
	Slots map[string]Slot
}

// Slot describes the stream that the node sends on a receiving m-line.
type Slot struct {
	SSRC    uint32
	RTXSSRC uint32 // 0 for none
	// Stream, Track and CNAME are the same on every node, or the page sees another track.
	Stream, Track, CNAME string
}

// Answer returns the SDP answer to the offer.
func (o *Offer) Answer(a *Answer) string {
	var w writer
	w.Grow(512 + 1024*len(o.Sections))
	w.put("v=0\r\no=- ").number(a.SessionID).put(" ").number(a.Version).put(" IN IP4 0.0.0.0\r\ns=-\r\nt=0 0\r\n")
	o.writeBundle(&w, a)
	if o.mixed {
		w.put("a=extmap-allow-mixed\r\n")
	}
	w.put("a=msid-semantic:WMS *\r\n")
	w.put("a=ice-ufrag:", a.Ufrag, "\r\na=ice-pwd:", a.Password, "\r\na=fingerprint:", a.Fingerprint, "\r\n")
	candidates := a.Candidates
	for i := range o.Sections {
		s := &o.Sections[i]
		if s.rejectedBy(a) {
			s.writeRejection(&w)
			continue
		}
		if s.Data {
			s.writeData(&w, a)
		} else {
			s.write(&w, a)
		}
		if candidates != nil {
			w.candidates(candidates, a)
			candidates = nil
		}
	}
	return w.String()
}

func (s *Section) rejectedBy(a *Answer) bool { return s.Rejected || s.Data && a.DataBytes == 0 }

func (o *Offer) writeBundle(w *writer, a *Answer) {
	named := false
	for i := range o.Sections {
		if o.Sections[i].rejectedBy(a) {
			continue
		}
		if !named {
			w.put("a=group:BUNDLE")
		}
		named = true
		w.put(" ", o.Sections[i].MID)
	}
	if named {
		w.put("\r\n")
	}
}

func (s *Section) kind() string {
	if s.Audio {
		return "audio"
	}
	return "video"
}

// writeRejection writes a rejected m-line. Firefox requires the c= line even there.
func (s *Section) writeRejection(w *writer) {
	if s.Data {
		w.put("m=application 0 ", dataProtocol, " ", dataFormat)
	} else {
		w.put("m=", s.kind(), " 0 UDP/TLS/RTP/SAVPF ").number(uint64(s.format))
	}
	w.put("\r\nc=IN IP4 0.0.0.0\r\n")
	if s.MID != "" {
		w.put("a=mid:", s.MID, "\r\n")
	}
	w.put("a=inactive\r\n")
}

// writeData writes the m-line of data channels (RFC 8841 section 5).
func (s *Section) writeData(w *writer, a *Answer) {
	w.put("m=application 9 ", dataProtocol, " ", dataFormat, "\r\nc=IN IP4 0.0.0.0\r\na=setup:", a.Setup, "\r\na=mid:", s.MID)
	w.put("\r\na=sctp-port:5000\r\na=max-message-size:").number(uint64(a.DataBytes)).put("\r\n")
}

// write writes an m-line that is not rejected. It repeats a=setup and a=mid on each m-line, because Pion reads them there.
func (s *Section) write(w *writer, a *Answer) {
	w.put("m=", s.kind(), " 9 UDP/TLS/RTP/SAVPF")
	for i := range s.Codecs {
		w.put(" ").number(uint64(s.Codecs[i].PayloadType))
		if rtx := s.Codecs[i].RTXPayloadType; rtx != 0 {
			w.put(" ").number(uint64(rtx))
		}
	}
	w.put("\r\nc=IN IP4 0.0.0.0\r\na=setup:", a.Setup, "\r\na=mid:", s.MID, "\r\na=rtcp-mux\r\na=rtcp-rsize\r\n")
	for i := range s.Codecs {
		w.codec(&s.Codecs[i])
	}
	s.writeExtensions(w)
	slot, filled := a.Slots[s.MID]
	switch {
	case s.Publishes && a.CanPublish:
		s.writeRIDs(w)
		w.put("a=recvonly\r\n")
	case s.Receives && a.CanSubscribe && filled:
		w.put("a=sendonly\r\n")
		s.writeSlot(w, slot)
	default:
		w.put("a=inactive\r\n")
	}
}

func (s *Section) writeExtensions(w *writer) {
	e := &s.Extensions
	s.writeExtension(w, e.AudioLevel, uriAudioLevel)
	s.writeExtension(w, e.AbsSendTime, uriAbsSendTime)
	s.writeExtension(w, e.TransportCC, uriTransportCC)
	s.writeExtension(w, e.MID, uriMID)
	s.writeExtension(w, e.RID, uriRID)
	s.writeExtension(w, e.RepairedRID, uriRepairedRID)
	s.writeExtension(w, e.AbsCaptureTime, uriAbsCaptureTime)
	s.writeExtension(w, e.PlayoutDelay, uriPlayoutDelay)
	s.writeExtension(w, e.VideoOrientation, uriVideoOrientation)
	s.writeExtension(w, e.DependencyDescriptor, uriDependencyDescriptor)
}

// writeExtension writes one a=extmap line. It reverses the direction of the offer (RFC 8285 section 6).
func (s *Section) writeExtension(w *writer, id uint8, uri string) {
	if id == 0 {
		return
	}
	w.put("a=extmap:").number(uint64(id))
	switch {
	case s.recvOnly&(1<<id) != 0:
		w.put("/sendonly")
	case s.sendOnly&(1<<id) != 0:
		w.put("/recvonly")
	}
	w.put(" ", uri, "\r\n")
}

// writeRIDs writes a=rid and a=simulcast. It marks paused encodings as paused, because libwebrtc would start them otherwise.
func (s *Section) writeRIDs(w *writer) {
	for _, rid := range s.RIDs {
		w.put("a=rid:", rid, " recv\r\n")
	}
	for i, rid := range s.RIDs {
		if i == 0 {
			w.put("a=simulcast:recv ")
		} else {
			w.put(";")
		}
		if s.paused&(1<<i) != 0 {
			w.put("~")
		}
		w.put(rid)
	}
	if len(s.RIDs) > 0 {
		w.put("\r\n")
	}
}

// writeSlot writes the stream of a slot. A client without the MID extension needs the SSRCs. Pion expects a=msid before them.
func (s *Section) writeSlot(w *writer, slot Slot) {
	w.put("a=msid:", slot.Stream, " ", slot.Track, "\r\n")
	repaired := slot.RTXSSRC != 0 && s.hasRTX()
	if repaired {
		w.put("a=ssrc-group:FID ").number(uint64(slot.SSRC)).put(" ").number(uint64(slot.RTXSSRC)).put("\r\n")
	}
	w.put("a=ssrc:").number(uint64(slot.SSRC)).put(" cname:", slot.CNAME, "\r\n")
	if repaired {
		w.put("a=ssrc:").number(uint64(slot.RTXSSRC)).put(" cname:", slot.CNAME, "\r\n")
	}
}

func (s *Section) hasRTX() bool {
	for i := range s.Codecs {
		if s.Codecs[i].RTXPayloadType != 0 {
			return true
		}
	}
	return false
}
