package livekit

import (
	"maps"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/holdfast-rtc/holdfast/signaling/livekit/livekitpb"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// people are the others in the room, as the client was told of them.
type people struct {
	members map[wire.PeerID]*member
	// arrived orders members, for the order of pictures that the client has not ranked.
	arrived  uint64
	version  uint32
	speakers map[wire.PeerID]bool
	// auto subscribes to every track that the client has said nothing of.
	auto, adaptive bool
}

// member is one of the others.
type member struct {
	peer    wire.Peer
	arrival uint64
	joined  int64 // Unix seconds of when this node heard of it
	// shown are the sources that a slot has shown. A muted microphone or camera of these is a muted track, another one is no track.
	shown map[wire.Source]bool
	wants map[wire.Source]*want
	told  *livekitpb.ParticipantInfo
}

// want is what the client said of a track.
type want struct {
	subscribed, disabled    bool
	width, height, priority uint32
}

func newPeople(settings *livekitpb.ConnectionSettings) people {
	return people{
		members: map[wire.PeerID]*member{}, speakers: map[wire.PeerID]bool{},
		auto: settings == nil || settings.GetAutoSubscribe(), adaptive: settings.GetAdaptiveStream(),
	}
}

// Sizes that a client is told of others' pictures, whose real ones are not known here, and that it gets while it has not said its own.
const (
	pictureWidth, pictureHeight   = 1280, 720
	adaptiveWidth, adaptiveHeight = 640, 360
)

func (m *member) on(source wire.Source) bool {
	switch source {
	case wire.SourceMicrophone:
		return !m.peer.AudioMuted
	case wire.SourceCamera:
		return !m.peer.VideoMuted
	case wire.SourceScreen:
		return m.peer.ScreenShared
	default:
		return m.peer.ScreenAudio
	}
}

// has reports whether the source is a track. A screen that is no longer shared is none.
func (m *member) has(source wire.Source) bool {
	return m.on(source) || m.shown[source] && (source == wire.SourceMicrophone || source == wire.SourceCamera)
}

func (p *people) want(m *member, source wire.Source) want {
	if w := m.wants[source]; w != nil {
		return *w
	}
	w := want{subscribed: p.auto, width: pictureWidth, height: pictureHeight}
	if p.adaptive {
		w.width, w.height = adaptiveWidth, adaptiveHeight
	}
	return w
}

func (p *people) setWant(sid string, change func(*want)) {
	peer, source, ok := ParseTrackSID(sid)
	m := p.members[peer]
	if !ok || m == nil {
		return
	}
	w := p.want(m, source)
	change(&w)
	m.wants[source] = &w
}

// subscribes reports whether the client is to get a stream.
func (t *Translator) subscribes(s stream) bool {
	m := t.people.members[s.peer]
	return m != nil && t.self.Permissions.Subscribe && t.people.want(m, s.source).subscribed
}

func trackInfo(s stream, muted bool) *livekitpb.TrackInfo {
	r := rowOf(s.source)
	info := &livekitpb.TrackInfo{
		Sid: s.sid(), Source: r.theirs, Muted: muted, Type: livekitpb.TrackType_AUDIO, MimeType: "audio/opus", Stream: string(s.source),
	}
	if !r.audio {
		info.Type, info.MimeType, info.Width, info.Height = livekitpb.TrackType_VIDEO, "video/VP8", pictureWidth, pictureHeight
	}
	return info
}

// nextVersion grows also from one connection of a client to the next, at whatever node: clients ignore what has a lower one.
func (p *people) nextVersion() uint32 {
	p.version = max(p.version+1, uint32(time.Now().UnixMilli()>>6))
	return p.version
}

func (p *people) info(m *member) *livekitpb.ParticipantInfo {
	info := &livekitpb.ParticipantInfo{
		Sid: ParticipantSID(m.peer.Peer), Identity: p.identityOf(m), Name: m.peer.Name, State: livekitpb.ParticipantInfo_ACTIVE,
		Metadata: m.peer.Metadata, Attributes: m.peer.Attributes, JoinedAt: m.joined,
		Permission: &livekitpb.ParticipantPermission{CanSubscribe: true, CanPublish: true, CanPublishData: true},
	}
	for _, r := range rows() {
		if m.has(r.source) {
			info.Tracks = append(info.Tracks, trackInfo(stream{m.peer.Peer, r.source}, !m.on(r.source)))
		}
	}
	info.IsPublisher = len(info.GetTracks()) > 0
	return info
}

// identityOf is unique, as LiveKit's clients rely on: of several peers with one identity, those that came later have the peer's id behind it.
func (p *people) identityOf(m *member) string {
	for _, other := range p.members {
		if other != m && other.peer.Identity == m.peer.Identity && other.arrival < m.arrival {
			return m.peer.Identity + "~" + string(m.peer.Peer)
		}
	}
	return m.peer.Identity
}

func (t *Translator) selfInfo() *livekitpb.ParticipantInfo {
	p := t.self.Permissions
	info := &livekitpb.ParticipantInfo{
		Sid: ParticipantSID(t.self.Peer), Identity: t.self.Identity, Name: t.self.Name, State: livekitpb.ParticipantInfo_ACTIVE,
		Version: t.people.nextVersion(), JoinedAt: time.Now().Unix(), IsPublisher: len(t.published.tracks) > 0,
		Permission: &livekitpb.ParticipantPermission{CanSubscribe: p.Subscribe, CanPublish: p.Publish, CanPublishData: p.Chat, CanUpdateMetadata: p.Rename},
	}
	for _, source := range p.Sources {
		info.Permission.CanPublishSources = append(info.Permission.CanPublishSources, rowOf(source).theirs)
	}
	if own := t.people.members[t.self.Peer]; own != nil {
		info.Metadata, info.Attributes = own.peer.Metadata, own.peer.Attributes
	}
	for _, o := range t.published.tracks {
		info.Tracks = append(info.Tracks, o.info)
	}
	return info
}

func (t *Translator) tellSelf() {
	if t.joined {
		t.update(t.selfInfo())
	}
}

func (t *Translator) update(infos ...*livekitpb.ParticipantInfo) {
	if len(infos) > 0 {
		t.tell(&livekitpb.SignalResponse{Message: &livekitpb.SignalResponse_Update{Update: &livekitpb.ParticipantUpdate{Participants: infos}}})
	}
}

// meet takes the roster of the beginning, and has the identity's earlier peers removed: LiveKit's rooms have an identity once.
func (t *Translator) meet(roster wire.List[wire.Peer]) []*livekitpb.ParticipantInfo {
	for _, p := range roster {
		if p.Peer == t.self.Peer {
			t.self.Name = p.Name
		} else if p.Identity == t.self.Identity {
			t.deps.Supersede(p.Peer)
			continue
		}
		t.people.enter(p)
	}
	return t.news()
}

func (p *people) enter(peer wire.Peer) {
	if m := p.members[peer.Peer]; m != nil {
		m.peer = peer
		return
	}
	p.arrived++
	p.members[peer.Peer] = &member{
		peer: peer, arrival: p.arrived, joined: time.Now().Unix(), shown: map[wire.Source]bool{}, wants: map[wire.Source]*want{},
	}
}

// news returns the others of whom the client does not know, or not as they are, in the order of their arrival.
func (t *Translator) news() []*livekitpb.ParticipantInfo {
	var changed []*livekitpb.ParticipantInfo
	for _, m := range t.people.ordered() {
		if m.peer.Peer == t.self.Peer {
			continue
		}
		info := t.people.info(m)
		info.Version = m.told.GetVersion()
		if m.told != nil && proto.Equal(info, m.told) {
			continue
		}
		info.Version = t.people.nextVersion()
		m.told = info
		changed = append(changed, info)
	}
	return changed
}

func (p *people) ordered() []*member {
	return slices.SortedFunc(maps.Values(p.members), func(a, b *member) int { return int(a.arrival) - int(b.arrival) })
}

func (t *Translator) replaceRoster(roster wire.List[wire.Peer]) {
	var left wire.List[wire.PeerID]
	for id := range t.people.members {
		if !slices.ContainsFunc(roster, func(p wire.Peer) bool { return p.Peer == id }) {
			left = append(left, id)
		}
	}
	t.changeRoster(roster, left)
}

func (t *Translator) changeRoster(entries wire.List[wire.Peer], left wire.List[wire.PeerID]) {
	for _, id := range left {
		m := t.people.members[id]
		delete(t.people.members, id)
		delete(t.people.speakers, id)
		if m != nil && m.told != nil {
			gone := proto.CloneOf(m.told)
			gone.State, gone.Version, gone.Tracks = livekitpb.ParticipantInfo_DISCONNECTED, t.people.nextVersion(), nil
			t.update(gone)
		}
	}
	for _, p := range entries {
		switch {
		case p.Peer == t.self.Peer:
			before := t.self.Name
			t.self.Name = p.Name
			t.people.enter(p)
			if p.Name != before {
				t.tellSelf()
			}
		case p.Identity != t.self.Identity:
			t.people.enter(p)
		}
	}
	t.tellNews()
}

func (t *Translator) tellNews() {
	t.keepSoon()
	changed := t.news()
	t.update(changed...)
	t.tellQuality(changed)
	t.showView()
	t.settle()
}

// tellQuality never says LOST: a client that hears that for ten seconds makes a new connection.
func (t *Translator) tellQuality(infos []*livekitpb.ParticipantInfo) {
	if len(infos) == 0 {
		return
	}
	update := &livekitpb.ConnectionQualityUpdate{}
	for _, info := range infos {
		update.Updates = append(update.Updates, &livekitpb.ConnectionQualityInfo{
			ParticipantSid: info.GetSid(), Quality: livekitpb.ConnectionQuality_EXCELLENT, Score: 5,
		})
	}
	t.tell(&livekitpb.SignalResponse{Message: &livekitpb.SignalResponse_ConnectionQuality{ConnectionQuality: update}})
}

// spoke tells who speaks, and who does no longer.
func (t *Translator) spoke(speakers wire.List[wire.Speaker]) {
	changed := &livekitpb.SpeakersChanged{}
	now := make(map[wire.PeerID]bool, len(speakers))
	for _, s := range speakers {
		now[s.Peer] = true
		changed.Speakers = append(changed.Speakers, &livekitpb.SpeakerInfo{Sid: ParticipantSID(s.Peer), Level: s.Level, Active: true})
	}
	for peer := range t.people.speakers {
		if !now[peer] {
			changed.Speakers = append(changed.Speakers, &livekitpb.SpeakerInfo{Sid: ParticipantSID(peer)})
		}
	}
	t.people.speakers = now
	if len(changed.GetSpeakers()) > 0 {
		t.tell(&livekitpb.SignalResponse{Message: &livekitpb.SignalResponse_SpeakersChanged{SpeakersChanged: changed}})
	}
}
