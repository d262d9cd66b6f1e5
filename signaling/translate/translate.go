// Package translate turns the messages of the control protocol into those of the WebSocket, and back. It decides nothing and keeps nothing:
// clients see the structs of signaling/wire, media nodes those of control, people/messaging and people/presence their own.
package translate

import (
	"cmp"
	"slices"
	"time"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/people/messaging"
	"github.com/holdfast-rtc/holdfast/people/presence"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// Peer translates a row of the roster.
func Peer(p *control.Peer) wire.Peer {
	return wire.Peer{
		Peer: wire.PeerID(p.GetId()), Identity: p.GetIdentity(), Name: p.GetName(),
		AudioMuted: p.GetAudioMuted(), VideoMuted: p.GetVideoMuted(), ScreenShared: p.GetScreenShared(), ScreenAudio: p.GetScreenAudio(),
		HandRaised: p.GetHandRaisedUnixMs(), Moderator: p.GetModerator(), Metadata: p.GetMetadata(), Attributes: p.GetAttributes(),
	}
}

// Roster translates the roster.
func Roster(peers []*control.Peer) wire.List[wire.Peer] { return each(peers, Peer) }

// Slots translates the slots.
func Slots(slots []*control.Slot) wire.List[wire.Slot] {
	return each(slots, func(s *control.Slot) wire.Slot {
		return wire.Slot{
			Mid: s.GetMid(), Kind: Kind(s.GetKind()), Peer: wire.PeerID(s.GetPeer()), Source: Source(s.GetSource()),
			Paused: s.GetPaused(),
		}
	})
}

// Lacks translates what the slots lack.
func Lacks(lacks []*control.Lack) wire.List[wire.Lack] {
	return each(lacks, func(l *control.Lack) wire.Lack {
		return wire.Lack{Peer: wire.PeerID(l.GetPeer()), Source: Source(l.GetSource()), Codec: l.GetCodec()}
	})
}

// Speakers translates the speakers.
func Speakers(speakers []*control.Speaker) wire.List[wire.Speaker] {
	return each(speakers, func(s *control.Speaker) wire.Speaker {
		return wire.Speaker{Peer: wire.PeerID(s.GetPeer()), Level: s.GetLevel()}
	})
}

// Reactions translates the reactions.
func Reactions(reactions []*control.Reaction) wire.List[wire.Reaction] {
	return each(reactions, func(r *control.Reaction) wire.Reaction {
		return wire.Reaction{Peer: wire.PeerID(r.GetPeer()), Emoji: r.GetEmoji()}
	})
}

// Kind translates a kind of media.
func Kind(k control.Kind) wire.Kind {
	if k == control.Kind_KIND_AUDIO {
		return wire.KindAudio
	}
	return wire.KindVideo
}

// Source translates a source; it is empty for one that this node does not know.
func Source(s control.Source) wire.Source {
	switch s {
	case control.Source_SOURCE_MICROPHONE:
		return wire.SourceMicrophone
	case control.Source_SOURCE_CAMERA:
		return wire.SourceCamera
	case control.Source_SOURCE_SCREEN:
		return wire.SourceScreen
	case control.Source_SOURCE_SCREEN_AUDIO:
		return wire.SourceScreenAudio
	default:
		return ""
	}
}

// ControlSource translates a source for a media node.
func ControlSource(s wire.Source) control.Source {
	switch s {
	case wire.SourceMicrophone:
		return control.Source_SOURCE_MICROPHONE
	case wire.SourceCamera:
		return control.Source_SOURCE_CAMERA
	case wire.SourceScreen:
		return control.Source_SOURCE_SCREEN
	case wire.SourceScreenAudio:
		return control.Source_SOURCE_SCREEN_AUDIO
	default:
		return control.Source_SOURCE_UNSPECIFIED
	}
}

func controlKind(k wire.Kind) control.Kind {
	if k == wire.KindAudio {
		return control.Kind_KIND_AUDIO
	}
	return control.Kind_KIND_VIDEO
}

// Offer translates an offer. known stands in for a slot table that the client left out.
func Offer(o *wire.Offer, known []*control.Slot) *control.PeerMessage {
	offer := &control.Offer{
		Id: o.ID, Sdp: o.SDP, Fresh: o.Fresh, Apart: o.Apart, Rests: o.Rests, Part: control.Part(o.Part), SlotsWait: o.SlotsWait, DataNegotiated: o.Data,
		ReportSenders: o.ReportSenders, DataReliable: uint32(o.DataReliable), DataLossy: uint32(o.DataLossy),
	}
	offer.Senders = each(o.Senders, func(s wire.Sender) *control.Sender {
		return &control.Sender{Mid: s.Mid, Source: ControlSource(s.Source), Rid: s.Rid, Ssrc: s.SSRC, RtxSsrc: s.RTXSSRC}
	})
	offer.Unused = each(o.Unused, func(s wire.UnusedSlot) *control.UnusedSlot {
		return &control.UnusedSlot{Mid: s.Mid, Ssrc: s.SSRC, RtxSsrc: s.RTXSSRC}
	})
	if !o.Fresh {
		offer.Slots = known
	}
	if o.Slots != nil {
		offer.Slots = each(o.Slots, func(s wire.Slot) *control.Slot {
			return &control.Slot{Mid: s.Mid, Kind: controlKind(s.Kind), Peer: string(s.Peer), Source: ControlSource(s.Source)}
		})
	}
	return &control.PeerMessage{Message: &control.PeerMessage_Offer{Offer: offer}}
}

// Senders translates the SSRCs that a media node knows of its client, with a repairing one beside the one that it repairs.
func Senders(known []*control.Sender) wire.List[wire.Sender] {
	senders := wire.List[wire.Sender]{}
	for _, s := range known {
		i := slices.IndexFunc(senders, func(o wire.Sender) bool { return o.Mid == s.GetMid() && o.Rid == s.GetRid() })
		if i < 0 {
			i, senders = len(senders), append(senders, wire.Sender{Mid: s.GetMid(), Source: Source(s.GetSource()), Rid: s.GetRid()})
		}
		senders[i].SSRC, senders[i].RTXSSRC = cmp.Or(s.GetSsrc(), senders[i].SSRC), cmp.Or(s.GetRtxSsrc(), senders[i].RTXSSRC)
	}
	return senders
}

// View translates what the client shows for a media node.
func View(v *wire.View) *control.PeerMessage {
	wants := each(v.Wants, func(w wire.Want) *control.Want {
		return &control.Want{Peer: string(w.Peer), Source: ControlSource(w.Source), Width: w.Width, Height: w.Height}
	})
	return &control.PeerMessage{Message: &control.PeerMessage_View{View: &control.View{Wants: wants}}}
}

// Mute translates the state of a source for a media node.
func Mute(source wire.Source, muted bool) *control.PeerMessage {
	return &control.PeerMessage{Message: &control.PeerMessage_Mute{Mute: &control.Mute{Source: ControlSource(source), Muted: muted}}}
}

// Rename translates a new name for a media node.
func Rename(name string) *control.PeerMessage {
	return &control.PeerMessage{Message: &control.PeerMessage_Rename{Rename: &control.Rename{Name: name}}}
}

// Hand translates a raised or lowered hand for a media node.
func Hand(h *wire.Hand) *control.PeerMessage {
	return &control.PeerMessage{Message: &control.PeerMessage_Hand{Hand: &control.Hand{Raised: h.Raised}}}
}

// Refresh translates a wish for key frames for a media node.
func Refresh(r *wire.Refresh) *control.PeerMessage {
	return &control.PeerMessage{Message: &control.PeerMessage_Refresh{Refresh: &control.Refresh{Mids: r.Mids}}}
}

func each[A, B any, L ~[]A](list L, f func(A) B) []B {
	out := make([]B, 0, len(list))
	for _, a := range list {
		out = append(out, f(a))
	}
	return out
}

// Chat translates a line of the chat.
func Chat(c *control.Chat, epoch uint64) *wire.Chat {
	return &wire.Chat{
		Peer: wire.PeerID(c.GetPeer()), Name: c.GetName(), Text: c.GetText(), ID: c.GetId(),
		At: c.GetAtUnixMs(), Seq: c.GetSeq(), Epoch: epoch,
	}
}

// Rests translates the layers of a client that nobody shows.
func Rests(r *control.Rests, epoch uint64) *wire.Rests {
	return &wire.Rests{Resting: each(r.GetResting(), func(l *control.RestingLayers) wire.RestingLayers {
		return wire.RestingLayers{Mid: l.GetMid(), RIDs: l.GetRids()}
	}), Epoch: epoch}
}

// ControlAct translates a moderator's act for a media node.
func ControlAct(act wire.Act) control.Act {
	switch act {
	case wire.ActMute:
		return control.Act_ACT_MUTE
	case wire.ActAskUnmute:
		return control.Act_ACT_ASK_UNMUTE
	case wire.ActLowerHand:
		return control.Act_ACT_LOWER_HAND
	case wire.ActGrant:
		return control.Act_ACT_GRANT
	case wire.ActGiveUp:
		return control.Act_ACT_GIVE_UP
	case wire.ActRemove, wire.ActEndCall: // a removal is a request of its own
	}
	return control.Act_ACT_UNSPECIFIED
}

// Presence translates the presence of users.
func Presence(list []presence.Status) *wire.Presence {
	m := &wire.Presence{Users: make(wire.List[wire.UserPresence], 0, len(list))}
	for _, status := range list {
		m.Users = append(m.Users, wire.UserPresence{
			User: status.User, State: string(status.State), Since: unixMilli(status.Since), LastSeen: unixMilli(status.LastSeen),
		})
	}
	return m
}

// unixMilli is 0 for no time.
func unixMilli(at time.Time) int64 {
	if at.IsZero() {
		return 0
	}
	return at.UnixMilli()
}

// UserMessage translates a direct message.
func UserMessage(m messaging.Message) *wire.UserMessage {
	return &wire.UserMessage{
		From: string(m.From), Name: m.Name, Kind: wire.MessageKind(m.Kind), Body: m.Body, Stream: m.Stream, Seq: m.Seq, Room: m.Room, At: m.At,
	}
}

// MessageState translates what became of a direct message.
func MessageState(status messaging.Status) *wire.MessageState {
	return &wire.MessageState{To: string(status.To), Stream: status.Stream, Seq: status.Seq, State: string(status.State)}
}

// RosterChange translates a change of the roster.
func RosterChange(c *control.RosterChange, epoch, seq uint64) wire.Message {
	switch {
	case c.GetJoined() != nil:
		return &wire.PeerJoined{Peer: Peer(c.GetJoined()), Epoch: epoch, Seq: seq}
	case c.GetUpdated() != nil:
		return &wire.PeerUpdated{Peer: Peer(c.GetUpdated()), Epoch: epoch, Seq: seq}
	default:
		return &wire.PeerLeft{Peer: wire.PeerID(c.GetLeft()), Epoch: epoch, Seq: seq}
	}
}

// RosterChanges translates changes of different peers.
func RosterChanges(changes []*control.RosterChange, epoch, seq uint64) *wire.RosterChanges {
	m := &wire.RosterChanges{Epoch: epoch, Seq: seq}
	for _, c := range changes {
		switch {
		case c.GetJoined() != nil:
			m.Entries = append(m.Entries, Peer(c.GetJoined()))
		case c.GetUpdated() != nil:
			m.Entries = append(m.Entries, Peer(c.GetUpdated()))
		default:
			m.Left = append(m.Left, wire.PeerID(c.GetLeft()))
		}
	}
	return m
}
