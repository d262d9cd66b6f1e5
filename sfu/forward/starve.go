package forward

import "time"

const (
	starvedAfter = 2 * time.Second
	starvedEvery = 5 * time.Second
	// So long a layer without a keyframe is passed over.
	shunned = 10 * time.Second
)

// Starved is a ready slot without a picture, or a subscriber that can have none.
type Starved struct {
	Subscriber PeerID
	Mid        string
	Publisher  PeerID
	Source     Source
	Heard      bool // packets come, but no keyframe
	LacksCodec bool // not negotiated; Mid is empty
}

type starvation struct {
	since, told time.Time
}
