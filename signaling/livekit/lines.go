package livekit

import (
	"cmp"
	"crypto/rand"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/holdfast-rtc/holdfast/signaling/livekit/livekitpb"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// lines are the media sections of the client's offers, and what those that receive show.
type lines struct {
	// held keeps the answer to the join's offer until the client has said something; owed says that there is one.
	held, owed bool
	// data says that the media node takes data channels.
	data bool
	// order has the mids as the media node has them.
	order []string
	// count numbers the offers to the media node. epoch keeps their ids apart from those of the client's former WebSocket, because the
	// media node answers an id that it knows from memory.
	count   uint64
	epoch   string
	version uint64 // of answers

	// current is the latest offer that the node has answered, with its answer; waiting is the one that it has not.
	current, waiting *exchange
	// unnamed says that the latest offer sends on a media section whose track is not announced yet.
	unnamed bool
	// stale says that the node must see the next offer.
	stale bool
	// asked says that the client owes an offer.
	asked bool

	// outstanding is the id of the latest offer to the media node, which queued follow: see Translator.offer.
	outstanding string
	queued      []*wire.Offer

	table map[string]wire.Slot
	// shown has, by mid, the stream that the client knows to be on a media section.
	shown  map[string]stream
	paused map[stream]bool
	view   *wire.View
}

// exchange is an offer and its answer.
type exchange struct {
	id     string // at the media node
	theirs uint32 // the client's id of the offer
	offer  *description
	same   string
	answer *description // nil before it came
	// quiet says that the client has its answer.
	quiet bool
}

func newLines() lines {
	return lines{epoch: rand.Text(), table: map[string]wire.Slot{}, shown: map[string]stream{}, paused: map[stream]bool{}}
}

func (l *lines) nextID() string {
	l.count++
	return l.epoch + "-" + strconv.FormatUint(l.count, 10)
}

// maxLines of each kind is what a client is asked to receive on at most; together they are fewer than the slots of a media node.
const maxLines = 30

// offered answers an offer that changes nothing from memory, and passes others on to the media node.
func (t *Translator) offered(m *livekitpb.SessionDescription) error {
	offer, err := parse(m.GetSdp())
	if err != nil {
		return err
	}
	l := &t.lines
	if t.resumption.awaited {
		t.reconnect() // nothing is known of what the offer carries
		return nil
	}
	l.asked = false
	l.unnamed = !t.bind(offer)
	e := &exchange{theirs: m.GetId(), offer: offer, same: offer.same()}
	if known := l.current; known != nil && l.waiting == nil && !l.stale && known.same == e.same {
		known.theirs, known.offer = e.theirs, e.offer
		t.sendAnswer()
		return nil
	}
	t.pass(e)
	return nil
}

func (t *Translator) pass(e *exchange) {
	l := &t.lines
	if r := &t.resumption; r.sections == 0 {
		r.sections = len(e.offer.sections)
	}
	if len(l.order) == 0 {
		first := description{sections: e.offer.sections[:min(len(e.offer.sections), t.resumption.sections)]}
		l.order = first.extend(nil, l.data)
	}
	l.order = e.offer.extend(l.order, l.data)
	e.id, l.waiting, l.stale = l.nextID(), e, false
	part := wire.PartBoth
	if t.downlink.used {
		part = wire.PartUplink
	}
	offer := &wire.Offer{
		ID: e.id, SDP: e.offer.forNode(l.order), Fresh: l.current == nil && !t.resumption.alive, Senders: t.published.senders(), Apart: true, Rests: true, Part: part, SlotsWait: true,
	}
	t.brings(offer)
	t.offer(offer)
}

// nameLines tells the media node of a track that was announced after its offer.
func (t *Translator) nameLines() {
	l := &t.lines
	e := cmp.Or(l.waiting, l.current)
	if !l.unnamed || e == nil {
		return
	}
	l.unnamed = !t.bind(e.offer)
	again := *e
	again.quiet = e == l.current || e.quiet
	t.pass(&again)
}

func (t *Translator) answered(m *wire.Answer) {
	l := &t.lines
	defer t.ended(m.ID)
	if t.downlink.waiting != "" && t.downlink.waiting == m.ID {
		t.nodeAnswered(m)
		return
	}
	e := l.waiting
	if e == nil || e.id != m.ID {
		return
	}
	answer, err := parse(m.SDP)
	if err != nil {
		t.deps.Log.Error("the media node's answer for a LiveKit client cannot be read", "error", err)
		return
	}
	e.answer = answer.answerTo(e.offer)
	l.current, l.waiting = e, nil
	if !e.quiet {
		t.sendAnswer()
	}
	t.restNew()
	t.settle()
}

// offerAgain is the pause after which an offer that came too soon is repeated.
const offerAgain = time.Second

// rejected has the client make a new connection, unless the offer only came too soon.
func (t *Translator) rejected(m *wire.OfferRejected) {
	l := &t.lines
	defer t.ended(m.ID)
	e := l.waiting
	ofDownlink := t.downlink.waiting != "" && t.downlink.waiting == m.ID
	switch soon := m.Code == wire.CodeTooManyMessages; {
	case !ofDownlink && (e == nil || e.id != m.ID):
		return
	case soon && ofDownlink:
		t.repeatDownlink()
		return
	case soon:
		time.AfterFunc(offerAgain, func() { t.repeat(e) })
		return
	}
	t.deps.Log.Info("offer of a LiveKit client rejected", "code", m.Code, "message", m.Message)
	t.reconnect()
}

func (t *Translator) repeat(e *exchange) {
	t.mu.Lock()
	if t.lines.waiting == e && !t.told {
		t.pass(e)
	}
	t.mu.Unlock()
	t.deps.Wake()
}

// askAgain has the client offer again, and the media node see that offer.
func (t *Translator) askAgain(m *wire.Reoffer) {
	// Only a client of ours can change the codec or restart ICE, and one with two connections cannot be asked.
	if m.Reason == "codec" || m.Reason == "unreached" || t.downlink.used {
		return
	}
	t.lines.stale = true
	t.require(0, 0)
}

// heldFor is how long the answer to the offer in a join waits for the client.
const heldFor = 300 * time.Millisecond

// release sends the answer that waited until the client spoke. The Go SDK begins to read after the join's response and only then sets the
// offer that it sent with the join: an answer that comes sooner is an error to it, and it does not connect. Candidates follow the offer.
func (t *Translator) release() {
	l := &t.lines
	owed := l.owed
	l.held, l.owed = false, false
	if owed {
		t.sendAnswer()
	}
}

// sendAnswer answers the client's latest offer. A media section that shows another stream than before shows nothing for one round:
// clients tell of a new track when a media section begins to receive.
func (t *Translator) sendAnswer() {
	l := &t.lines
	if l.held {
		l.owed = true
		return
	}
	e := l.current
	streams, sids := map[string]string{}, map[string]string{}
	shown := map[string]stream{}
	var begun []string
	for i := range e.answer.sections {
		s := &e.answer.sections[i]
		now, filled := t.shows(s.mid)
		before, was := l.shown[s.mid]
		if s.direction != "sendonly" || !filled || was && before != now {
			continue
		}
		if !was || !t.resumption.answered {
			begun = append(begun, s.mid)
		}
		shown[s.mid] = now
		sids[s.mid] = now.sid()
		streams[s.mid] = ParticipantSID(now.peer) + "|" + now.sid() + " " + now.sid()
	}
	l.shown, t.resumption.answered = shown, true
	l.version++
	t.tell(&livekitpb.SignalResponse{Message: &livekitpb.SignalResponse_Answer{Answer: &livekitpb.SessionDescription{
		Type: "answer", Sdp: e.answer.showing(streams, l.version).String(), Id: e.theirs, MidToTrackId: sids,
	}}})
	if len(begun) > 0 {
		t.say(&wire.Refresh{Mids: begun}) // until now the media node sends nothing there, because Pion would drop it for good
	}
	t.keepSoon()
	t.settle()
}

// shows returns the stream that the client is to get on a media section.
func (t *Translator) shows(mid string) (stream, bool) {
	slot, found := t.lines.table[mid]
	s := stream{slot.Peer, slot.Source}
	if !found || slot.Peer == "" || slot.Peer == t.self.Peer || !t.subscribes(s) {
		return stream{}, false
	}
	return s, true
}

// settle asks the client for an offer if an answer would tell it something new, or if it needs more media sections.
func (t *Translator) settle() {
	l := &t.lines
	if t.downlink.used {
		t.serveDownlink()
		return
	}
	if l.held || l.asked || l.waiting != nil || l.current == nil || t.told {
		return
	}
	audio, video := t.lacking("audio"), t.lacking("video")
	changed := false
	for i := range l.current.answer.sections {
		s := &l.current.answer.sections[i]
		if s.direction != "sendonly" {
			continue
		}
		now, filled := t.shows(s.mid)
		before, was := l.shown[s.mid]
		changed = changed || filled != was || now != before
	}
	if changed || audio > 0 || video > 0 {
		t.require(audio, video)
	}
}

func (t *Translator) require(audio, video int) {
	t.lines.asked = true
	t.tell(&livekitpb.SignalResponse{Message: &livekitpb.SignalResponse_MediaSectionsRequirement{
		MediaSectionsRequirement: &livekitpb.MediaSectionsRequirement{NumAudios: uint32(audio), NumVideos: uint32(video)},
	}})
}

// lacking is how many more media sections of a kind the client needs for what it subscribes to.
func (t *Translator) lacking(kind string) int {
	have := 0
	for _, s := range t.lines.current.offer.sections {
		if s.kind == kind && s.receives() && !s.rejected() {
			have++
		}
	}
	return max(min(t.needed(kind == "audio"), maxLines)-have, 0)
}

// needed is how many streams of a kind the client subscribes to.
func (t *Translator) needed(audio bool) int {
	need := 0
	for _, m := range t.people.members {
		for _, r := range rows() {
			if m.peer.Peer != t.self.Peer && r.audio == audio && m.has(r.source) && t.subscribes(stream{m.peer.Peer, r.source}) {
				need++
			}
		}
	}
	return need
}

// filled takes the table of slots.
func (t *Translator) filled(slots wire.List[wire.Slot]) {
	l := &t.lines
	clear(l.table)
	paused := map[stream]bool{}
	for _, slot := range slots {
		l.table[slot.Mid] = slot
		if m := t.people.members[slot.Peer]; m != nil {
			m.shown[slot.Source] = true
		}
		if slot.Paused {
			paused[stream{slot.Peer, slot.Source}] = true
		}
	}
	t.tellPaused(paused)
	t.settle()
}

func (t *Translator) tellPaused(now map[stream]bool) {
	update := &livekitpb.StreamStateUpdate{}
	add := func(s stream, state livekitpb.StreamState) {
		update.StreamStates = append(update.StreamStates, &livekitpb.StreamStateInfo{ParticipantSid: ParticipantSID(s.peer), TrackSid: s.sid(), State: state})
	}
	for s := range now {
		if !t.lines.paused[s] {
			add(s, livekitpb.StreamState_PAUSED)
		}
	}
	for s := range t.lines.paused {
		if !now[s] {
			add(s, livekitpb.StreamState_ACTIVE)
		}
	}
	t.lines.paused = now
	if len(update.GetStreamStates()) > 0 {
		t.tell(&livekitpb.SignalResponse{Message: &livekitpb.SignalResponse_StreamStateUpdate{StreamStateUpdate: update}})
	}
}

// maxSIDs is how many tracks one message may name; a room has fewer.
const maxSIDs = 4096

func (t *Translator) subscribed(m *livekitpb.UpdateSubscription) {
	sids := m.GetTrackSids()
	for _, p := range m.GetParticipantTracks() {
		sids = append(sids, p.GetTrackSids()...)
	}
	for _, sid := range sids[:min(len(sids), maxSIDs)] {
		t.people.setWant(sid, func(w *want) { w.subscribed = m.GetSubscribe() })
	}
	t.showView()
	t.settle()
}

// sized takes the size in which the client shows a picture.
func (t *Translator) sized(m *livekitpb.UpdateTrackSettings) {
	sids := m.GetTrackSids()
	for _, sid := range sids[:min(len(sids), maxSIDs)] {
		t.people.setWant(sid, func(w *want) {
			w.disabled, w.priority = m.GetDisabled(), m.GetPriority()
			w.width, w.height = m.GetWidth(), m.GetHeight()
			if w.width == 0 || w.height == 0 {
				w.width, w.height = sizeOf(m.GetQuality())
			}
		})
	}
	t.showView()
}

const maxPixels = 1 << 15

// sizeOf is what a quality stands for: usual sizes of the layers of a camera.
func sizeOf(quality livekitpb.VideoQuality) (width, height uint32) {
	switch quality {
	case livekitpb.VideoQuality_LOW:
		return 320, 180
	case livekitpb.VideoQuality_MEDIUM:
		return 640, 360
	default:
		return 1920, 1080
	}
}

// showView says which pictures the client shows, in which size, if that has changed.
func (t *Translator) showView() {
	type ranked struct {
		wire.Want

		priority uint32
	}
	var wants []ranked
	for _, m := range t.people.ordered() {
		for _, r := range rows() {
			w := t.people.want(m, r.source)
			row := ranked{Want: wire.Want{Peer: m.peer.Peer, Source: r.source}, priority: cmp.Or(w.priority, ^uint32(0))}
			switch subscribed := t.subscribes(stream{m.peer.Peer, r.source}); {
			case m.peer.Peer == t.self.Peer, !m.has(r.source), r.audio == subscribed:
				continue // sound is heard unless it is listed with no size
			case !r.audio && !w.disabled:
				row.Width, row.Height = min(w.width, maxPixels), min(w.height, maxPixels)
			}
			wants = append(wants, row)
		}
	}
	slices.SortStableFunc(wants, func(a, b ranked) int { return cmp.Compare(a.priority, b.priority) })
	view := &wire.View{Wants: wire.List[wire.Want]{}}
	for _, w := range wants[:min(len(wants), wire.MaxWants)] {
		view.Wants = append(view.Wants, w.Want)
	}
	if t.lines.view != nil && reflect.DeepEqual(view, t.lines.view) {
		return
	}
	t.lines.view = view
	t.say(view)
}
