// Package wire is the protocol between a client and its signaling node, version
// 1, as docs/PROTOCOL.md states it: one struct per message, one JSON object per
// text frame.
//
// It promises that what Decode returns is within the limits below and has every
// required field, that unknown fields are ignored, and that an unknown type is
// told apart from a malformed message. It knows neither sockets nor rooms.
package wire

import "github.com/holdfast-rtc/holdfast/ring"

// Subprotocol is the WebSocket subprotocol of this version.
const Subprotocol = "holdfast.v1"

// Version is the number said in `joined`.
const Version = 1

// Limits on what a client may send, far above what a page needs.
const (
	MaxMessageBytes = 256 << 10
	MaxSDPBytes     = 192 << 10
	MaxResumeBytes  = 32 << 10
	MaxNameBytes    = 256
	MaxPeerIDBytes  = 64
	MaxOfferIDBytes = 64
	MaxMidBytes     = 32
	MaxRidBytes     = 32
	MaxSenders      = 64
	MaxSlots        = 512
	MaxWants        = 512
	MaxLost         = 64
	MaxRefreshed    = 64
	MaxPixels       = 1 << 15 // of one side of a wanted picture
	MaxChatRunes    = 2000    // a long paragraph
	MaxChatIDBytes  = 64
	MaxGapMs        = 24 * 60 * 60 * 1000
	// MaxInteger is the largest integer of a JavaScript number.
	MaxInteger = 1<<53 - 1
	// MaxAttempt leaves room in the 64-bit generation of the control protocol.
	MaxAttempt = 1<<31 - 1
)

// Type is the `type` of a message.
type Type string

// PeerID names a peer: unique in its room, kept across nodes.
type PeerID string

// Message is any message of either direction.
type Message interface {
	// Type says which message this is.
	Type() Type
}

// Source is what a track shows.
type Source string

// The sources.
const (
	SourceMicrophone Source = "microphone"
	SourceCamera     Source = "camera"
	SourceScreen     Source = "screen"
)

// Kind is the kind of a media line.
type Kind string

// The kinds.
const (
	KindAudio Kind = "audio"
	KindVideo Kind = "video"
)

// List is written as [] when it is nil, because clients loop over it.
type List[T any] []T

// Peer is one entry of the roster.
type Peer struct {
	Peer         PeerID `json:"peer"`
	Identity     string `json:"identity"`
	Name         string `json:"name"`
	AudioMuted   bool   `json:"audioMuted"`
	VideoMuted   bool   `json:"videoMuted"`
	ScreenShared bool   `json:"screenShared,omitempty"`
}

// Slot says what one receive m-line shows; nothing, if its peer is empty.
type Slot struct {
	Mid    string `json:"mid"`
	Kind   Kind   `json:"kind"`
	Peer   PeerID `json:"peer"`
	Source Source `json:"source"`
	Paused bool   `json:"paused,omitempty"` // the client's path does not carry it now
}

// Sender says what one of the client's m-lines carries, or one simulcast layer once SSRCs are known.
type Sender struct {
	Mid     string `json:"mid"`
	Source  Source `json:"source"`
	Rid     string `json:"rid,omitempty"`
	SSRC    uint32 `json:"ssrc,omitempty"`
	RTXSSRC uint32 `json:"rtxSsrc,omitempty"`
}

// Stream is one source of somebody.
type Stream struct {
	Peer   PeerID `json:"peer"`
	Source Source `json:"source"`
}

// Want is one picture that the page shows, in device pixels; 0 x 0 is hidden.
type Want struct {
	Peer   PeerID `json:"peer"`
	Source Source `json:"source"`
	Width  uint32 `json:"width"`
	Height uint32 `json:"height"`
}

// Speaker has a level from 0 to 1.
type Speaker struct {
	Peer  PeerID  `json:"peer"`
	Level float32 `json:"level"`
}

// Permissions is what the session's token allows.
type Permissions struct {
	Publish   bool     `json:"publish"`
	Subscribe bool     `json:"subscribe"`
	Chat      bool     `json:"chat"`
	Rename    bool     `json:"rename"`
	Sources   []Source `json:"sources,omitempty"` // everything when absent
}

// ICEServer is one RTCIceServer of the browser's configuration.
type ICEServer struct {
	URLs       []string `json:"urls"`
	Username   string   `json:"username,omitempty"`
	Credential string   `json:"credential,omitempty"`
}

// Placement says under which pin a message was said.
type Placement struct {
	Node  ring.NodeID `json:"node"`
	Epoch uint64      `json:"epoch"`
}
