package livekit

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-rtc/holdfast/signaling/livekit/livekitpb"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// downlink is the second connection of a client that has one for each direction. The client answers there, and the media node answers
// too: it is offered a description that the client could have made, and its answer becomes the offer to the client.
//
// A media section shows one stream. Once that ends, the section is rejected for good, and its place is used again: Pion cannot receive
// anew on a section that was inactive. Only the anchor stays: it comes first, shows nothing and carries the transport.
type downlink struct {
	// used says that the client has two connections.
	used bool
	// asked are the sections as the media node has them, and told as the client has them: those that have shown something.
	asked, told []*place
	mids        int

	// client has the client's ICE and DTLS, nil before its first answer. met says that the media node has them.
	client []string
	met    bool
	// answer is the media node's latest.
	answer *description
	// waiting is the id of the offer that the media node has not answered, and due says that the client has not answered its offer.
	waiting string
	due     bool
	version uint64
}

// place is a media section.
type place struct {
	mid    string
	audio  bool
	anchor bool
	shows  stream
	// offered says that the client was offered what the section shows.
	offered bool
	// ended sections are rejected. nodeKnows and clientKnows say that the other side has heard so, and that another section may take its place.
	ended, nodeKnows, clientKnows bool
}

func newDownlink(used bool) downlink {
	anchor := &place{mid: "0", audio: true, anchor: true}
	return downlink{used: used, asked: []*place{anchor}, told: []*place{anchor}}
}

// serveDownlink negotiates what has changed. One offer at a time is under way, to the media node or to the client.
func (t *Translator) serveDownlink() {
	d := &t.downlink
	if d.waiting != "" || d.due || t.told {
		return
	}
	changed := t.endPlaces()
	for _, audio := range []bool{true, false} {
		for range t.missing(audio) {
			d.mids++
			d.asked = replace(d.asked, &place{mid: strconv.Itoa(d.mids), audio: audio}, func(p *place) bool { return p.nodeKnows })
			changed = true
		}
	}
	switch {
	case changed || d.answer == nil || d.client != nil && !d.met:
		t.askNode()
	case t.fillPlaces() || d.client == nil:
		t.offerClient()
	}
}

// replace puts a section where one has ended, or at the end.
func replace(places []*place, fresh *place, free func(*place) bool) []*place {
	if i := slices.IndexFunc(places, free); i >= 0 {
		places[i] = fresh
		return places
	}
	return append(places, fresh)
}

// endPlaces ends the sections whose slots show another stream than the client was told of, and reports whether there are any.
func (t *Translator) endPlaces() (changed bool) {
	for _, p := range t.downlink.asked {
		if p.shows == (stream{}) || p.ended {
			continue
		}
		if now, filled := t.shows(p.mid); !filled || now != p.shows {
			p.ended, changed = true, true
		}
	}
	return changed
}

// missing is how many sections of a kind are needed beside those that there are.
func (t *Translator) missing(audio bool) int {
	have := 0
	for _, p := range t.downlink.asked {
		if p.audio == audio && !p.ended && !p.anchor {
			have++
		}
	}
	return max(min(t.needed(audio), maxLines)-have, 0)
}

// fillPlaces shows the client what slots have come to show, and reports whether there is something new.
func (t *Translator) fillPlaces() (changed bool) {
	d := &t.downlink
	for _, p := range d.asked {
		changed = changed || p.ended && !p.clientKnows && slices.Contains(d.told, p)
		if p.anchor || p.ended || p.shows != (stream{}) {
			continue
		}
		now, filled := t.shows(p.mid)
		if !filled || d.answer.find(p.mid) == nil {
			continue
		}
		p.shows, changed = now, true
		d.told = replace(d.told, p, func(old *place) bool { return old.clientKnows })
	}
	return changed
}

// askNode has the media node answer for the client.
func (t *Translator) askNode() {
	d := &t.downlink
	part, fresh := wire.PartDownlink, d.answer == nil
	client := d.client
	if client == nil {
		part, client = wire.PartDownlinkUnmet, unmetClient()
	} else {
		d.met = true
	}
	d.version++
	d.waiting = t.lines.nextID()
	t.offer(&wire.Offer{ID: d.waiting, SDP: d.forNode(client), Fresh: fresh, Senders: wire.List[wire.Sender]{}, Apart: true, Part: part, SlotsWait: true})
}

// unmetClient stands for the ICE and DTLS of a client that has not answered.
func unmetClient() []string {
	return []string{"a=ice-ufrag:unmet", "a=ice-pwd:" + strings.Repeat("unmet", 5), "a=fingerprint:sha-256 " + strings.Repeat("00:", 31) + "00"}
}

func (d *downlink) forNode(client []string) string {
	out := description{session: append([]string{
		"v=0", "o=- 1 " + strconv.FormatUint(d.version, 10) + " IN IP4 0.0.0.0", "s=-", "t=0 0", "a=group:BUNDLE" + mids(d.asked), "a=setup:actpass",
	}, client...)}
	for _, p := range d.asked {
		out.sections = append(out.sections, section{lines: p.receiving()})
	}
	return out.String()
}

func mids(places []*place) string {
	var list strings.Builder
	for _, p := range places {
		if !p.ended {
			list.WriteString(" " + p.mid)
		}
	}
	return list.String()
}

// receiving is the section of a client that receives. The codecs are those that every SDK decodes.
func (p *place) receiving() []string {
	kind, formats, codecs := "video", "96 97 98 99 102 103", []string{
		"a=rtpmap:96 VP8/90000", "a=rtpmap:97 rtx/90000", "a=fmtp:97 apt=96",
		"a=rtpmap:98 VP9/90000", "a=fmtp:98 profile-id=0", "a=rtpmap:99 rtx/90000", "a=fmtp:99 apt=98",
		"a=rtpmap:102 H264/90000", "a=fmtp:102 level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42e01f", "a=rtpmap:103 rtx/90000", "a=fmtp:103 apt=102",
		"a=rtcp-fb:* transport-cc", "a=rtcp-fb:* ccm fir", "a=rtcp-fb:* nack", "a=rtcp-fb:* nack pli",
	}
	if p.audio {
		kind, formats, codecs = "audio", "111", []string{
			"a=rtpmap:111 opus/48000/2", "a=fmtp:111 minptime=10;useinbandfec=1", "a=rtcp-fb:111 transport-cc", "a=rtcp-fb:111 nack",
		}
	}
	port, direction := " 9 ", "a=recvonly"
	switch {
	case p.ended:
		port, direction = " 0 ", "a=inactive"
	case p.anchor:
		direction = "a=inactive"
	}
	return slices.Concat([]string{"m=" + kind + port + "UDP/TLS/RTP/SAVPF " + formats, "c=IN IP4 0.0.0.0", "a=mid:" + p.mid, direction, "a=rtcp-mux"}, codecs, []string{
		"a=extmap:2 http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time",
		"a=extmap:3 http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01",
		"a=extmap:4 urn:ietf:params:rtp-hdrext:sdes:mid",
	})
}

// nodeAnswered takes the media node's answer to an offer of the downlink.
func (t *Translator) nodeAnswered(m *wire.Answer) {
	d := &t.downlink
	answer, err := parse(m.SDP)
	if err != nil {
		t.deps.Log.Error("the media node's answer for a LiveKit client cannot be read", "error", err)
		t.reconnect()
		return
	}
	if d.answer != nil && !slices.Equal(answer.security(), d.answer.security()) {
		t.reconnect() // the media node has a new connection, which needs a new one of the client
		return
	}
	d.waiting, d.answer = "", answer
	for _, p := range d.asked {
		p.nodeKnows = p.ended
	}
	t.serveDownlink()
}

// offerClient offers the client the sections that have shown something.
func (t *Translator) offerClient() {
	d := &t.downlink
	streams, sids := map[string]string{}, map[string]string{}
	out := &description{session: append(slices.Clone(d.answer.session), "a=ice-lite")}
	for _, p := range d.told {
		s := d.answer.find(p.mid)
		if p.ended || s == nil {
			s = &section{mid: p.mid, direction: "inactive", lines: p.receiving()} // Pion reads the codecs also where the port is 0
		} else if !p.anchor {
			sids[p.mid], streams[p.mid] = p.shows.sid(), ParticipantSID(p.shows.peer)+"|"+p.shows.sid()+" "+p.shows.sid()
		}
		out.sections = append(out.sections, *s)
	}
	out.bundle(strings.Fields(mids(d.told)))
	d.due = true
	d.version++
	t.tell(&livekitpb.SignalResponse{Message: &livekitpb.SignalResponse_Offer{Offer: &livekitpb.SessionDescription{
		Type: "offer", Sdp: out.showing(streams, d.version).String(), Id: uint32(d.version & (1<<31 - 1)), MidToTrackId: sids,
	}}})
}

// clientAnswered takes the client's answer on its downlink. Only its ICE and DTLS count.
func (t *Translator) clientAnswered(m *livekitpb.SessionDescription) error {
	d := &t.downlink
	if !d.used || !d.due {
		return nil
	}
	answer, err := parse(m.GetSdp())
	if err != nil {
		return err
	}
	d.due = false
	if d.client == nil {
		d.client = answer.security()
	}
	var begun []string
	for _, p := range d.told {
		p.clientKnows = p.ended
		if !p.anchor && !p.ended && !p.offered {
			begun = append(begun, p.mid)
		}
		p.offered = true
	}
	if len(begun) > 0 {
		t.say(&wire.Refresh{Mids: begun}) // the media node has sent nothing there yet
	}
	t.serveDownlink()
	return nil
}

// security returns the first of each attribute of ICE and DTLS that a media node reads of a client.
func (d *description) security() (found []string) {
	lines := slices.Clone(d.session)
	for i := range d.sections {
		lines = append(lines, d.sections[i].lines...)
	}
	for _, name := range []string{"a=ice-ufrag:", "a=ice-pwd:", "a=fingerprint:"} {
		if i := slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, name) }); i >= 0 {
			found = append(found, lines[i])
		}
	}
	return found
}

// offer has the media node see one offer of a client with two connections after the other, because the session repeats only the latest.
func (t *Translator) offer(o *wire.Offer) {
	l := &t.lines
	if t.downlink.used && l.outstanding != "" {
		l.queued = append(l.queued, o)
		return
	}
	l.outstanding = o.ID
	t.say(o)
}

// ended sends the next offer, once one was answered or rejected.
func (t *Translator) ended(id string) {
	l := &t.lines
	if l.outstanding != id {
		return
	}
	l.outstanding = ""
	if len(l.queued) > 0 {
		next := l.queued[0]
		l.queued = l.queued[1:]
		t.offer(next)
	}
}

// repeatDownlink asks the media node again, after an offer that came too soon.
func (t *Translator) repeatDownlink() {
	time.AfterFunc(offerAgain, func() {
		t.mu.Lock()
		if !t.told {
			t.downlink.waiting = ""
			t.askNode()
		}
		t.mu.Unlock()
		t.deps.Wake()
	})
}
