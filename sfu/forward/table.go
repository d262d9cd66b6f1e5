package forward

// PeerID identifies a peer of the room.
type PeerID string

// Source is one of a peer's sources, by its name in the wire protocol.
type Source string

// The sources of a peer, each at most once.
const (
	SourceMicrophone  Source = "microphone"
	SourceCamera      Source = "camera"
	SourceScreen      Source = "screen"
	SourceScreenAudio Source = "screen-audio"
)

// Sources lists them all.
func Sources() []Source {
	return []Source{SourceMicrophone, SourceCamera, SourceScreen, SourceScreenAudio}
}

// Kind returns the kind of the source's media.
func (s Source) Kind() Kind {
	if s == SourceMicrophone || s == SourceScreenAudio {
		return KindAudio
	}
	return KindVideo
}

func (s Source) shared() bool { return s == SourceScreen || s == SourceScreenAudio }

// Kind is audio or video.
type Kind string

// The kinds of media.
const (
	KindAudio Kind = "audio"
	KindVideo Kind = "video"
)

// Entry is what a slot shows; without a Peer it shows nothing.
type Entry struct {
	Mid    string
	Kind   Kind
	Peer   PeerID
	Source Source
	// Paused: the budget has nothing for this picture.
	Paused bool
}

// Want is one picture of a page; 0 x 0 is hidden.
type Want struct {
	Peer   PeerID
	Source Source
	// In device pixels.
	Width, Height int
}

func (w Want) hidden() bool { return w.Width <= 0 && w.Height <= 0 }

// Speaker is somebody who speaks now.
type Speaker struct {
	Peer PeerID
	// Level is from 0 (silence) to 1.
	Level float64
}

// Lack is a picture whose codec a subscriber lacks.
type Lack struct {
	Peer   PeerID
	Source Source
	// Codec is its name without the kind, for example "H264".
	Codec string
}

// Starved is a ready slot without a picture, or a subscriber that can have none.
type Starved struct {
	Subscriber PeerID
	Mid        string
	Publisher  PeerID
	Source     Source
	// Heard: packets come, but no keyframe.
	Heard bool
	// LacksCodec: the subscriber did not negotiate the codec. Mid is empty then.
	LacksCodec bool
}
