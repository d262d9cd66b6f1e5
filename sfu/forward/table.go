package forward

// PeerID names one participant; it is unique in the room.
type PeerID string

// Source says what a publication shows. The values are the words of the wire protocol.
type Source string

// The sources a peer can publish, each at most once.
const (
	SourceMicrophone Source = "microphone"
	SourceCamera     Source = "camera"
	SourceScreen     Source = "screen"
)

// Kind is the kind of media of a layer or a slot.
type Kind string

// The kinds of media.
const (
	KindAudio Kind = "audio"
	KindVideo Kind = "video"
)

// Entry says what one slot of a subscriber shows. An empty Peer is an empty slot.
type Entry struct {
	Mid    string
	Kind   Kind
	Peer   PeerID
	Source Source
	Paused bool // nothing is sent just now: the subscriber's budget does not reach for it
}

// Want is one line of what a page shows. 0 x 0 means that it is hidden now: it
// may keep a slot that nobody else needs, and nothing is sent.
type Want struct {
	Peer          PeerID
	Source        Source
	Width, Height int // device pixels
}

// Speaker is somebody who speaks now.
type Speaker struct {
	Peer  PeerID
	Level float64 // 0 (silence) to 1 (RFC 6464 level 0, the loudest)
}
