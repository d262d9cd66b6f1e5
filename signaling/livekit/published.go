package livekit

import (
	"slices"

	"github.com/holdfast-rtc/holdfast/signaling/livekit/livekitpb"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// published are the client's own tracks, at most one of each source.
type published struct {
	tracks []*ownTrack
	// resting are the layers that nobody shows, as the media node told last.
	resting wire.List[wire.RestingLayers]
}

type ownTrack struct {
	// cids are the client's ids of the track; a second codec of it has its own.
	cids   []string
	source wire.Source
	mid    string // empty before an offer names the track
	info   *livekitpb.TrackInfo
	// restTold says that the client was told which of the track's layers rest.
	restTold bool
}

const (
	maxCIDs     = 8
	maxCIDBytes = 256
	maxLayers   = 8
)

func (p *published) find(match func(*ownTrack) bool) *ownTrack {
	i := slices.IndexFunc(p.tracks, match)
	if i < 0 {
		return nil
	}
	return p.tracks[i]
}

func (p *published) withCID(cid string) *ownTrack {
	return p.find(func(o *ownTrack) bool { return slices.Contains(o.cids, cid) })
}

func (p *published) withSource(source wire.Source) *ownTrack {
	return p.find(func(o *ownTrack) bool { return o.source == source })
}

// choose returns the source of a new track: the one that it names, else the first of its kind that nothing is published from.
func (p *published) choose(m *livekitpb.AddTrackRequest) (wire.Source, bool) {
	for _, r := range rows() {
		if r.theirs == m.GetSource() && r.audio == (m.GetType() == livekitpb.TrackType_AUDIO) && p.withSource(r.source) == nil {
			return r.source, true
		}
	}
	for _, r := range rows() {
		if r.audio == (m.GetType() == livekitpb.TrackType_AUDIO) && p.withSource(r.source) == nil {
			return r.source, true
		}
	}
	return "", false
}

func (t *Translator) mayPublish(source wire.Source) bool {
	p := t.self.Permissions
	return p.Publish && (len(p.Sources) == 0 || slices.Contains(p.Sources, source))
}

// addTrack answers at once; the offer with the track may come before or after.
func (t *Translator) addTrack(m *livekitpb.AddTrackRequest) {
	known := t.published.withCID(m.GetCid())
	if known == nil && m.GetSid() != "" { // another codec of a track
		known = t.published.find(func(o *ownTrack) bool { return o.info.GetSid() == m.GetSid() })
	}
	if known == nil {
		known = t.newTrack(m)
	}
	if known == nil {
		return // the client's own timeout tells it
	}
	for _, codec := range m.GetSimulcastCodecs() {
		known.addCID(codec.GetCid())
	}
	known.addCID(m.GetCid())
	t.tell(&livekitpb.SignalResponse{Message: &livekitpb.SignalResponse_TrackPublished{
		TrackPublished: &livekitpb.TrackPublishedResponse{Cid: m.GetCid(), Track: known.info},
	}})
	t.nameLines()
}

func (o *ownTrack) addCID(cid string) {
	if cid != "" && len(cid) <= maxCIDBytes && len(o.cids) < maxCIDs && !slices.Contains(o.cids, cid) {
		o.cids = append(o.cids, cid)
	}
}

// newTrack returns nil for a track that cannot be published.
func (t *Translator) newTrack(m *livekitpb.AddTrackRequest) *ownTrack {
	source, free := t.published.choose(m)
	if !free || !t.mayPublish(source) || m.GetCid() == "" || len(m.GetCid()) > maxCIDBytes || m.GetType() == livekitpb.TrackType_DATA || len(m.GetLayers()) > maxLayers {
		t.deps.Log.Info("a LiveKit client's track is not taken: each source is published once, and as the token allows", "source", m.GetSource().String(), "type", m.GetType().String())
		return nil
	}
	r := rowOf(source)
	info := trackInfo(stream{t.self.Peer, source}, m.GetMuted())
	info.Name, info.Source, info.Stereo, info.DisableDtx, info.DisableRed = clipped(m.GetName()), m.GetSource(), m.GetStereo(), m.GetDisableDtx(), m.GetDisableRed()
	info.Layers, info.Stream = m.GetLayers(), clipped(m.GetStream())
	if !r.audio {
		info.Width, info.Height, info.Simulcast = m.GetWidth(), m.GetHeight(), len(m.GetLayers()) > 1
	}
	if codecs := m.GetSimulcastCodecs(); len(codecs) > 0 {
		info.MimeType = mimeOf(codecs[0].GetCodec(), r.audio)
		info.Codecs = []*livekitpb.SimulcastCodecInfo{{MimeType: info.GetMimeType(), Cid: m.GetCid(), Layers: m.GetLayers()}}
	}
	o := &ownTrack{source: source, info: info}
	t.published.tracks = append(t.published.tracks, o)
	t.say(&wire.Mute{Source: source, Muted: m.GetMuted()})
	return o
}

func clipped(text string) string { return text[:min(len(text), maxCIDBytes)] }

// mimeOf reads "vp8" and "video/VP8".
func mimeOf(codec string, audio bool) string {
	codec = clipped(codec)
	switch {
	case codec == "":
		return ""
	case slices.Contains([]byte(codec), '/'):
		return codec
	case audio:
		return "audio/" + codec
	default:
		return "video/" + codec
	}
}

// bind finds the tracks of the media sections that send: by the track's id, else in the order in which they were announced. A track
// whose media section sends no longer has ended. It reports whether every section that sends has a track.
func (t *Translator) bind(offer *description) (whole bool) {
	taken := map[string]*ownTrack{}
	var rest []*section
	for i := range offer.sections {
		s := &offer.sections[i]
		if !s.isMedia() || !s.sends() || s.rejected() {
			continue
		}
		if o := t.published.withCID(s.track); s.track != "" && o != nil {
			taken[s.mid] = o
		} else {
			rest = append(rest, s)
		}
	}
	for mid, o := range taken {
		o.mid = mid
	}
	whole = true
	for _, s := range rest {
		o := t.published.find(func(o *ownTrack) bool { return o.mid == s.mid && taken[s.mid] == nil })
		if o == nil {
			o = t.published.find(func(o *ownTrack) bool { return o.mid == "" && rowOf(o.source).audio == (s.kind == "audio") })
		}
		if o == nil {
			whole = false
			continue
		}
		o.mid, taken[s.mid] = s.mid, o
	}
	t.published.tracks = slices.DeleteFunc(t.published.tracks, func(o *ownTrack) bool {
		ended := o.mid != "" && taken[o.mid] != o
		if ended {
			t.say(&wire.Mute{Source: o.source, Muted: true})
		}
		return ended
	})
	return whole
}

// senders name the source of each media section that sends.
func (p *published) senders() wire.List[wire.Sender] {
	list := wire.List[wire.Sender]{}
	for _, o := range p.tracks {
		if o.mid != "" {
			list = append(list, wire.Sender{Mid: o.mid, Source: o.source})
		}
	}
	return list
}

func (t *Translator) muted(m *livekitpb.MuteTrackRequest) {
	o := t.published.find(func(o *ownTrack) bool { return o.info.GetSid() == m.GetSid() })
	if o == nil {
		return
	}
	o.info.Muted = m.GetMuted()
	t.say(&wire.Mute{Source: o.source, Muted: m.GetMuted()})
}

// mutedBy has the client mute what a moderator muted.
func (t *Translator) mutedBy(source wire.Source) {
	o := t.published.withSource(source)
	if o == nil {
		return
	}
	o.info.Muted = true
	t.tell(&livekitpb.SignalResponse{Message: &livekitpb.SignalResponse_Mute{Mute: &livekitpb.MuteTrackRequest{Sid: o.info.GetSid(), Muted: true}}})
}
