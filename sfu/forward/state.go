package forward

import (
	"fmt"
	"time"
)

// SlotState counts since AddSlot.
type SlotState struct {
	Entry
	Ready bool
	// Waits says what the slot waits for; empty for nothing.
	Waits string
	// Target and Sent are RIDs; empty for none.
	Target, Sent string
	// PacketsIn counts the target's packets.
	PacketsIn  uint64
	PacketsOut uint64
	// KeyframesAsked counts the subscriber's requests.
	KeyframesAsked uint64
	AskedAt        time.Time
	KeyframesSent  uint64
	SentAt         time.Time
}

// LayerState counts since AddLayer.
type LayerState struct {
	Source    Source
	RID       string
	SSRC      uint32
	Muted     bool
	PacketsIn uint64
	HeardAt   time.Time
	// BitsPerSecond is without redundancy.
	BitsPerSecond uint64
	Height        int
	// KeyframesAsked counts the requests to the publisher.
	KeyframesAsked uint64
	AskedAt        time.Time
	KeyframesSeen  uint64
	SeenAt         time.Time
}

// PeerState is a peer's slots and layers.
type PeerState struct {
	// BudgetBitsPerSecond is 0 without a limit.
	BudgetBitsPerSecond uint64
	// ShortBitsPerSecond is the rate that would be sent without a budget; 0 if the budget suffices.
	ShortBitsPerSecond uint64
	Slots              []SlotState
	Layers             []LayerState
}

// States waits for the loop; nil once that has ended.
func (r *Room) States() map[PeerID]PeerState {
	told := make(chan map[PeerID]PeerState, 1)
	r.post(func() {
		// The channel is closed even if states panics.
		defer close(told)
		told <- r.states(time.Now())
	})
	select {
	case states := <-told:
		return states
	case <-r.done:
		return nil
	}
}

func (r *Room) states(now time.Time) map[PeerID]PeerState {
	states := make(map[PeerID]PeerState, len(r.members.subscribers))
	for _, pub := range r.members.publications {
		state := states[pub.key.peer]
		for _, l := range pub.layers {
			state.Layers = append(state.Layers, LayerState{
				Source: pub.key.source, RID: l.cfg.RID, SSRC: l.cfg.SSRC, Muted: pub.muted,
				PacketsIn: l.packets, HeardAt: l.lastHeard, BitsPerSecond: l.bits(), Height: l.height,
				KeyframesAsked: l.requests.sent, AskedAt: l.requests.last, KeyframesSeen: l.keyframe.Count, SeenAt: l.keyframe.At,
			})
		}
		states[pub.key.peer] = state
	}
	for id, sub := range r.members.subscribers {
		state := states[id]
		state.BudgetBitsPerSecond, state.ShortBitsPerSecond = sub.budget, sub.short
		for _, s := range sub.slots {
			slot := SlotState{
				Entry: s.tableEntry(), Ready: s.ready, Waits: r.waits(sub, s, now), Target: ridName(s.target), Sent: ridName(s.current),
				PacketsOut: uint64(s.report.packets), KeyframesAsked: s.keyframes.asked, AskedAt: s.keyframes.askedAt,
				KeyframesSent: s.keyframes.sent, SentAt: s.keyframes.sentAt,
			}
			if s.target != nil {
				slot.PacketsIn = s.target.packets
			}
			state.Slots = append(state.Slots, slot)
		}
		states[id] = state
	}
	return states
}

// ridName is "-" for a layer without RID, empty for none.
func ridName(l *Layer) string {
	switch {
	case l == nil:
		return ""
	case l.cfg.RID == "":
		return "-"
	default:
		return l.cfg.RID
	}
}

func (r *Room) waits(sub *subscriber, s *Slot, now time.Time) string {
	switch {
	case s.entry.Peer == "":
		return ""
	case sub.wishFor(s.entry).hidden:
		return "the page: it hides the picture"
	case s.paused && s.limitedByNode:
		return "the node: it is near its ceiling of egress"
	case s.paused:
		return fmt.Sprintf("the path: it carries %d bit/s", sub.budget)
	case s.target == nil:
		return "the publisher's track"
	case !s.ready:
		return "the subscriber's transport"
	case !s.target.alive(now):
		return fmt.Sprintf("packets of layer %s", ridName(s.target))
	case s.current == nil && s.cfg.Kind == KindVideo:
		return fmt.Sprintf("a keyframe of layer %s", ridName(s.target))
	default:
		return ""
	}
}
