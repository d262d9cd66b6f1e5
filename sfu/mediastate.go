package sfu

import (
	"time"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/sfu/forward"
)

// Slots and tracks in an answer, some 200 bytes each.
const maxStatesTold = 4000

// tellMedia adds at most left states, and returns how many more may be added.
func (r *room) tellMedia(peers []*control.HeldPeer, unplaced map[string][]*control.Stream, left int) int {
	states := r.media.States()
	now := time.Now()
	for _, p := range peers {
		state := states[forward.PeerID(p.GetId())]
		size := len(state.Slots) + len(state.Layers) + len(unplaced[p.GetId()])
		if size > left {
			continue
		}
		left -= size
		p.Media = mediaProto(state, now)
		p.Media.Unplaced = unplaced[p.GetId()]
	}
	return left
}

func mediaProto(state forward.PeerState, now time.Time) *control.MediaState {
	m := &control.MediaState{EstimateBitsPerSecond: state.BudgetBitsPerSecond, ShortBitsPerSecond: state.ShortBitsPerSecond}
	for _, s := range state.Slots {
		entry := slotsProto([]forward.Entry{s.Entry})[0]
		m.Slots = append(m.Slots, &control.SlotState{
			Mid: entry.GetMid(), Kind: entry.GetKind(), Peer: entry.GetPeer(), Source: entry.GetSource(),
			Ready: s.Ready, Paused: s.Paused, Waits: s.Waits, Target: s.Target, Sent: s.Sent, PacketsIn: s.PacketsIn, PacketsOut: s.PacketsOut,
			KeyframesAsked: s.KeyframesAsked, AskedMsAgo: age(s.AskedAt, now), KeyframesSent: s.KeyframesSent, SentMsAgo: age(s.SentAt, now),
		})
	}
	for _, l := range state.Layers {
		m.Tracks = append(m.Tracks, &control.TrackState{
			Source: sourceProto(l.Source), Rid: l.RID, Ssrc: l.SSRC, Muted: l.Muted, PacketsIn: l.PacketsIn, HeardMsAgo: age(l.HeardAt, now),
			BitsPerSecond: l.BitsPerSecond, Height: uint32(l.Height),
			KeyframesAsked: l.KeyframesAsked, AskedMsAgo: age(l.AskedAt, now), KeyframesSeen: l.KeyframesSeen, SeenMsAgo: age(l.SeenAt, now),
		})
	}
	return m
}

// -1 for never
func age(at, now time.Time) int64 {
	if at.IsZero() {
		return -1
	}
	return now.Sub(at).Milliseconds()
}
