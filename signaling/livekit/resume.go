package livekit

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-rtc/holdfast/signaling/livekit/livekitpb"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// resumption is how a client goes on with its RTCPeerConnection after its WebSocket or its media node was lost. It is told to resume: it
// opens another WebSocket, perhaps at another signaling node, says there what it has (SyncState), and offers with an ICE restart. What it
// does not know itself is in its token: see kept.
type resumption struct {
	// able says that the client is of a kind that can.
	able bool
	// brought is what the token of a client that resumes says, else nil. awaited says that its SyncState has not come, and alive that its
	// media node still has its connection. answered says that an offer of this WebSocket was answered.
	brought  *kept
	awaited  bool
	alive    bool
	answered bool

	// What the next token says, with the latest resume token. due says that one is on its way.
	sections int
	senders  wire.List[wire.Sender]
	token    string
	due      bool

	// reliable and lossy are the streams of data channels that the client has opened before.
	reliable, lossy uint16
}

// kept is the part of a client's state that only the token has.
type kept struct {
	// Sections is how many media sections the client's first offer had. Later ones follow: see description.extend.
	Sections int `json:"sections"`
	// Senders are the client's SSRCs as its media node knew them: browsers do not say those of layers.
	Senders wire.List[wire.Sender] `json:"senders,omitempty"`
	// People are whom the client knows. Who has left meanwhile is to be told.
	People []wire.PeerID `json:"people,omitempty"`
}

const (
	// maxKeptPeople bounds the token. In larger rooms clients make a new connection.
	maxKeptPeople = 150
	// keepAfter is how long changes are gathered before the client gets a new token.
	keepAfter = 500 * time.Millisecond
)

// keepsConnection reports whether a client can go on with another node's ICE and DTLS. libwebrtc can, Pion and Firefox cannot. Of other
// SDKs and browsers it is not known.
func keepsConnection(request *livekitpb.JoinRequest, userAgent string) bool {
	return request.GetClientInfo().GetSdk() == livekitpb.ClientInfo_JS && strings.Contains(userAgent, "Chrome/")
}

func newResumption(deps *Deps, request *livekitpb.JoinRequest, state string) resumption {
	r := resumption{able: !deps.TwoConnections && keepsConnection(request, deps.UserAgent)}
	brought := &kept{}
	if r.able && request.GetReconnect() && state != "" && json.Unmarshal([]byte(state), brought) == nil && brought.Sections > 0 {
		r.brought, r.sections, r.senders = brought, brought.Sections, brought.Senders
	}
	return r
}

// comeBack has the client go on at the room's new node, which has let the session in.
func (t *Translator) comeBack() {
	r, l := &t.resumption, &t.lines
	switch {
	case t.downlink.used:
		t.reconnect()
	case r.awaited:
		r.alive = false // the offer is yet to come
	case l.current == nil && l.waiting != nil:
		r.alive = false
		t.pass(l.waiting)
	case t.mayResume():
		t.renew(r.token)
		t.leave(livekitpb.LeaveRequest_RESUME, livekitpb.DisconnectReason_MIGRATION)
	default:
		t.reconnect()
	}
}

// mayResume is false while the token would lack something. Layers whose SSRCs nobody knows would never be seen again.
func (t *Translator) mayResume() bool {
	r, l := &t.resumption, &t.lines
	if !r.able || l.held || l.current == nil || len(t.people.members) > maxKeptPeople {
		return false
	}
	for _, o := range t.published.tracks {
		known := slices.ContainsFunc(r.senders, func(s wire.Sender) bool { return s.Mid == o.mid && s.SSRC != 0 })
		if o.info.GetSimulcast() && o.mid != "" && !known {
			return false
		}
	}
	return true
}

// state is that of the next token, or nothing: the client cannot resume then.
func (t *Translator) state() string {
	if !t.mayResume() {
		return ""
	}
	k := kept{Sections: t.resumption.sections, Senders: t.resumption.senders}
	for _, m := range t.people.ordered() {
		if m.told != nil {
			k.People = append(k.People, m.peer.Peer)
		}
	}
	state, err := json.Marshal(k)
	if err != nil {
		t.deps.Log.Error("state of a LiveKit client not kept", "error", err)
	}
	return string(state)
}

// renew gives the client the token for its next connection.
func (t *Translator) renew(resume string) {
	t.resumption.token = resume
	if token := t.deps.Renew(resume, t.state()); token != "" {
		t.tell(&livekitpb.SignalResponse{Message: &livekitpb.SignalResponse_RefreshToken{RefreshToken: token}})
	}
}

// keepSoon gives the client a token that has what has changed.
func (t *Translator) keepSoon() {
	r := &t.resumption
	if !r.able || r.due || t.told {
		return
	}
	r.due = true
	time.AfterFunc(keepAfter, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		r.due = false
		if !t.told {
			t.renew(r.token)
		}
	})
}

// Sends takes the client's SSRCs, as its media node knows them.
func (t *Translator) Sends(senders wire.List[wire.Sender]) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.resumption.senders = senders
	t.keepSoon()
}

// goOn answers a client that resumes.
func (t *Translator) goOn(roster wire.List[wire.Peer], servers wire.ICEServers, resume string) {
	r := &t.resumption
	r.awaited = true
	others := t.meet(roster)
	t.tell(&livekitpb.SignalResponse{Message: &livekitpb.SignalResponse_Reconnect{Reconnect: &livekitpb.ReconnectResponse{
		IceServers: serversOf(servers), ServerInfo: t.serverInfo(),
	}}})
	for _, peer := range r.brought.People {
		if t.people.members[peer] == nil {
			t.update(&livekitpb.ParticipantInfo{Sid: ParticipantSID(peer), State: livekitpb.ParticipantInfo_DISCONNECTED, Version: t.people.nextVersion()})
		}
	}
	t.update(others...)
	t.tellQuality(others)
	t.renew(resume)
	own := t.people.members[t.self.Peer]
	for _, source := range []wire.Source{wire.SourceMicrophone, wire.SourceCamera} {
		t.say(&wire.Mute{Source: source, Muted: own == nil || !own.on(source)})
	}
	if own != nil && own.on(wire.SourceScreen) {
		t.say(&wire.Mute{Source: wire.SourceScreen})
	}
}

// synced takes what the client has: what it publishes, what it shows and what it wants.
func (t *Translator) synced(m *livekitpb.SyncState) {
	r := &t.resumption
	if !r.awaited {
		return
	}
	r.awaited = false
	tracks := m.GetPublishTracks()
	for _, published := range tracks[:min(len(tracks), len(rows()))] {
		t.republish(published)
	}
	t.shownBefore(m.GetAnswer().GetSdp())
	for _, channel := range m.GetDataChannels() {
		switch id := uint16(min(channel.GetId(), 1<<16-1)); channel.GetLabel() {
		case "_reliable":
			r.reliable = id
		case "_lossy":
			r.lossy = id
		}
	}
	disabled := m.GetTrackSidsDisabled()
	for _, sid := range disabled[:min(len(disabled), maxSIDs)] {
		t.people.setWant(sid, func(w *want) { w.disabled = true })
	}
	t.subscribed(m.GetSubscription())
	t.tellSelf()
}

func (t *Translator) republish(m *livekitpb.TrackPublishedResponse) {
	peer, source, ok := ParseTrackSID(m.GetTrack().GetSid())
	if !ok || peer != t.self.Peer || !t.mayPublish(source) || t.published.withSource(source) != nil {
		return
	}
	o := &ownTrack{source: source, info: m.GetTrack()}
	o.addCID(m.GetCid())
	if i := slices.IndexFunc(t.resumption.senders, func(s wire.Sender) bool { return s.Source == source }); i >= 0 {
		o.mid = t.resumption.senders[i].Mid
	}
	if own := t.people.members[t.self.Peer]; own != nil {
		o.info.Muted = !own.on(source)
	}
	t.published.tracks = append(t.published.tracks, o)
}

// shownBefore takes what the client's media sections show from the last answer that it had. A new node fills them likewise.
func (t *Translator) shownBefore(answer string) {
	d, err := parse(answer)
	if err != nil {
		return
	}
	for _, s := range d.sections {
		peer, source, ok := ParseTrackSID(s.track)
		m := t.people.members[peer]
		if !ok || m == nil || s.direction != "sendonly" || rowOf(source).audio != (s.kind == "audio") {
			continue
		}
		m.shown[source] = true
		t.lines.shown[s.mid] = stream{peer, source}
		if !t.resumption.alive {
			kind := wire.KindVideo
			if s.kind == "audio" {
				kind = wire.KindAudio
			}
			t.lines.table[s.mid] = wire.Slot{Mid: s.mid, Kind: kind, Peer: peer, Source: source}
		}
	}
}

// brings adds to the first offer of a client that resumes what a new node does not know.
func (t *Translator) brings(o *wire.Offer) {
	r := &t.resumption
	o.ReportSenders, o.DataReliable, o.DataLossy = r.able, r.reliable, r.lossy
	if r.brought == nil || r.answered || r.alive {
		return
	}
	o.Slots = []wire.Slot{}
	for _, slot := range t.lines.table {
		o.Slots = append(o.Slots, slot)
	}
	for _, s := range r.brought.Senders {
		if i := slices.IndexFunc(o.Senders, func(known wire.Sender) bool { return known.Mid == s.Mid }); i >= 0 {
			s.Source = o.Senders[i].Source
			o.Senders = append(o.Senders, s)
		}
	}
}
