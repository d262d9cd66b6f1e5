package forward

import "time"

// SlotState counts since AddSlot.
type SlotState struct {
	Entry
	Ready          bool
	Waits          string // empty: for nothing
	Target, Sent   string // RIDs; empty: none
	PacketsIn      uint64 // of the target
	PacketsOut     uint64
	KeyframesAsked uint64 // by the subscriber
	AskedAt        time.Time
	KeyframesSent  uint64
	SentAt         time.Time
}

// LayerState counts since AddLayer.
type LayerState struct {
	Source         Source
	RID            string
	SSRC           uint32
	Muted          bool
	PacketsIn      uint64
	HeardAt        time.Time
	BitsPerSecond  uint64 // without redundancy
	Height         int
	KeyframesAsked uint64 // of the publisher
	AskedAt        time.Time
	KeyframesSeen  uint64
	SeenAt         time.Time
}

// PeerState is a peer's slots and layers.
type PeerState struct {
	BudgetBitsPerSecond uint64 // 0: unlimited
	ShortBitsPerSecond  uint64 // rate without a budget; 0: the budget suffices
	Slots               []SlotState
	Layers              []LayerState
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
