package signaling

import (
	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// media is a media node's account of one peer, with counts since each slot or track began; an age of -1 ms is never.
type media struct {
	EstimateBitsPerSecond uint64       `json:"estimateBitsPerSecond"` // 0: unlimited
	ShortBitsPerSecond    uint64       `json:"shortBitsPerSecond"`    // missing; 0: the path suffices
	Slots                 []mediaSlot  `json:"slots"`
	Tracks                []mediaTrack `json:"tracks"`
	Unplaced              []unplaced   `json:"unplaced"`
}

type mediaSlot struct {
	Mid            string      `json:"mid"`
	Kind           wire.Kind   `json:"kind"`
	Peer           string      `json:"peer"`
	Source         wire.Source `json:"source"`
	Ready          bool        `json:"ready"`
	Paused         bool        `json:"paused"`
	Waits          string      `json:"waits"` // empty when it sends
	Target         string      `json:"target"`
	Sent           string      `json:"sent"`
	PacketsIn      uint64      `json:"packetsIn"`
	PacketsOut     uint64      `json:"packetsOut"`
	KeyframesAsked uint64      `json:"keyframesAsked"`
	AskedMsAgo     int64       `json:"askedMsAgo"`
	KeyframesSent  uint64      `json:"keyframesSent"`
	SentMsAgo      int64       `json:"sentMsAgo"`
}

type mediaTrack struct {
	Source         wire.Source `json:"source"`
	Rid            string      `json:"rid"`
	SSRC           uint32      `json:"ssrc"`
	Muted          bool        `json:"muted"`
	PacketsIn      uint64      `json:"packetsIn"`
	HeardMsAgo     int64       `json:"heardMsAgo"`
	BitsPerSecond  uint64      `json:"bitsPerSecond"`
	Height         uint32      `json:"height"`
	KeyframesAsked uint64      `json:"keyframesAsked"`
	AskedMsAgo     int64       `json:"askedMsAgo"`
	KeyframesSeen  uint64      `json:"keyframesSeen"`
	SeenMsAgo      int64       `json:"seenMsAgo"`
}

type unplaced struct {
	SSRC    uint32 `json:"ssrc"`
	Packets uint64 `json:"packets"`
	Codec   string `json:"codec"`
}

func mediaOf(m *control.MediaState) *media {
	if m == nil {
		return nil
	}
	return &media{
		EstimateBitsPerSecond: m.GetEstimateBitsPerSecond(), ShortBitsPerSecond: m.GetShortBitsPerSecond(),
		Slots: each(m.GetSlots(), func(s *control.SlotState) mediaSlot {
			return mediaSlot{
				Mid: s.GetMid(), Kind: wireKind(s.GetKind()), Peer: s.GetPeer(), Source: wireSource(s.GetSource()),
				Ready: s.GetReady(), Paused: s.GetPaused(), Waits: s.GetWaits(), Target: s.GetTarget(), Sent: s.GetSent(),
				PacketsIn: s.GetPacketsIn(), PacketsOut: s.GetPacketsOut(), KeyframesAsked: s.GetKeyframesAsked(), AskedMsAgo: s.GetAskedMsAgo(),
				KeyframesSent: s.GetKeyframesSent(), SentMsAgo: s.GetSentMsAgo(),
			}
		}),
		Tracks: each(m.GetTracks(), func(t *control.TrackState) mediaTrack {
			return mediaTrack{
				Source: wireSource(t.GetSource()), Rid: t.GetRid(), SSRC: t.GetSsrc(), Muted: t.GetMuted(), PacketsIn: t.GetPacketsIn(),
				HeardMsAgo: t.GetHeardMsAgo(), BitsPerSecond: t.GetBitsPerSecond(), Height: t.GetHeight(), KeyframesAsked: t.GetKeyframesAsked(),
				AskedMsAgo: t.GetAskedMsAgo(), KeyframesSeen: t.GetKeyframesSeen(), SeenMsAgo: t.GetSeenMsAgo(),
			}
		}),
		Unplaced: each(m.GetUnplaced(), func(s *control.Stream) unplaced {
			return unplaced{SSRC: s.GetSsrc(), Packets: s.GetPackets(), Codec: s.GetCodec()}
		}),
	}
}
