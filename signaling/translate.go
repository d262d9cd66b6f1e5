package signaling

import (
	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

func wirePeer(p *control.Peer) wire.Peer {
	return wire.Peer{
		Peer: wire.PeerID(p.GetId()), Identity: p.GetIdentity(), Name: p.GetName(),
		AudioMuted: p.GetAudioMuted(), VideoMuted: p.GetVideoMuted(), ScreenShared: p.GetScreenShared(), ScreenAudio: p.GetScreenAudio(),
		HandRaised: p.GetHandRaisedUnixMs(), Moderator: p.GetModerator(),
	}
}

func wireRoster(peers []*control.Peer) wire.List[wire.Peer] { return each(peers, wirePeer) }

func wireSlots(slots []*control.Slot) wire.List[wire.Slot] {
	return each(slots, func(s *control.Slot) wire.Slot {
		return wire.Slot{
			Mid: s.GetMid(), Kind: wireKind(s.GetKind()), Peer: wire.PeerID(s.GetPeer()), Source: wireSource(s.GetSource()),
			Paused: s.GetPaused(),
		}
	})
}

func wireLacks(lacks []*control.Lack) wire.List[wire.Lack] {
	return each(lacks, func(l *control.Lack) wire.Lack {
		return wire.Lack{Peer: wire.PeerID(l.GetPeer()), Source: wireSource(l.GetSource()), Codec: l.GetCodec()}
	})
}

func wireSpeakers(speakers []*control.Speaker) wire.List[wire.Speaker] {
	return each(speakers, func(s *control.Speaker) wire.Speaker {
		return wire.Speaker{Peer: wire.PeerID(s.GetPeer()), Level: s.GetLevel()}
	})
}

func wireReactions(reactions []*control.Reaction) wire.List[wire.Reaction] {
	return each(reactions, func(r *control.Reaction) wire.Reaction {
		return wire.Reaction{Peer: wire.PeerID(r.GetPeer()), Emoji: r.GetEmoji()}
	})
}

func wireKind(k control.Kind) wire.Kind {
	if k == control.Kind_KIND_AUDIO {
		return wire.KindAudio
	}
	return wire.KindVideo
}

func wireSource(s control.Source) wire.Source {
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

func controlSource(s wire.Source) control.Source {
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

// known stands in for a slot table that the client left out.
func offerMessage(o *wire.Offer, known []*control.Slot) *control.PeerMessage {
	offer := &control.Offer{Id: o.ID, Sdp: o.SDP, Fresh: o.Fresh}
	offer.Senders = each(o.Senders, func(s wire.Sender) *control.Sender {
		return &control.Sender{Mid: s.Mid, Source: controlSource(s.Source), Rid: s.Rid, Ssrc: s.SSRC, RtxSsrc: s.RTXSSRC}
	})
	offer.Unused = each(o.Unused, func(s wire.UnusedSlot) *control.UnusedSlot {
		return &control.UnusedSlot{Mid: s.Mid, Ssrc: s.SSRC, RtxSsrc: s.RTXSSRC}
	})
	if !o.Fresh {
		offer.Slots = known
	}
	if o.Slots != nil {
		offer.Slots = each(o.Slots, func(s wire.Slot) *control.Slot {
			return &control.Slot{Mid: s.Mid, Kind: controlKind(s.Kind), Peer: string(s.Peer), Source: controlSource(s.Source)}
		})
	}
	return &control.PeerMessage{Message: &control.PeerMessage_Offer{Offer: offer}}
}

func viewMessage(v *wire.View) *control.PeerMessage {
	wants := each(v.Wants, func(w wire.Want) *control.Want {
		return &control.Want{Peer: string(w.Peer), Source: controlSource(w.Source), Width: w.Width, Height: w.Height}
	})
	return &control.PeerMessage{Message: &control.PeerMessage_View{View: &control.View{Wants: wants}}}
}

func muteMessage(source wire.Source, muted bool) *control.PeerMessage {
	return &control.PeerMessage{Message: &control.PeerMessage_Mute{Mute: &control.Mute{Source: controlSource(source), Muted: muted}}}
}

func renameMessage(name string) *control.PeerMessage {
	return &control.PeerMessage{Message: &control.PeerMessage_Rename{Rename: &control.Rename{Name: name}}}
}

func handMessage(h *wire.Hand) *control.PeerMessage {
	return &control.PeerMessage{Message: &control.PeerMessage_Hand{Hand: &control.Hand{Raised: h.Raised}}}
}

func refreshMessage(r *wire.Refresh) *control.PeerMessage {
	return &control.PeerMessage{Message: &control.PeerMessage_Refresh{Refresh: &control.Refresh{Mids: r.Mids}}}
}

func each[A, B any, L ~[]A](list L, f func(A) B) []B {
	out := make([]B, 0, len(list))
	for _, a := range list {
		out = append(out, f(a))
	}
	return out
}

func wireChat(c *control.Chat, epoch uint64) *wire.Chat {
	return &wire.Chat{
		Peer: wire.PeerID(c.GetPeer()), Name: c.GetName(), Text: c.GetText(), ID: c.GetId(),
		At: c.GetAtUnixMs(), Seq: c.GetSeq(), Epoch: epoch,
	}
}

func controlAct(act wire.Act) control.Act {
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
	case wire.ActRemove: // another request
	}
	return control.Act_ACT_UNSPECIFIED
}
