// Package wire is the protocol of docs/PROTOCOL.md, version 1: one struct per message, one JSON object per text frame.
//
// What Decode returns is within the limits and has every required field. Unknown fields are ignored, unknown types told apart.
package wire

import "github.com/holdfast-rtc/holdfast/ring"

// Subprotocol is the name of the WebSocket's subprotocol.
const Subprotocol = "holdfast.v1"

// Version is the version of the protocol, which `joined` tells.
const Version = 1

// The bounds of messages, which docs/PROTOCOL.md tells clients.
const (
	MaxMessageBytes = 256 << 10
	// MaxServerBytes is for what a server says: a large room's roster.
	MaxServerBytes  = 4 << 20
	maxSDPBytes     = 192 << 10
	maxResumeBytes  = 48 << 10
	MaxNameBytes    = 256
	MaxPeerIDBytes  = 64
	maxOfferIDBytes = 64
	maxMidBytes     = 32
	maxRidBytes     = 32
	maxSenders      = 64
	maxSlots        = 512
	MaxWants        = 512
	maxLost         = 64
	maxRefreshed    = 64
	maxPixels       = 1 << 15
	maxChatRunes    = 2000
	maxChatIDBytes  = 64
	maxRequestBytes = 64
	MaxWatched      = 500
	maxUserBytes    = 256
	MaxReceivers    = 50
	MaxBodyBytes    = 8 << 10
	maxStreamBytes  = 64
	maxReceived     = 200
	maxGapMs        = 24 * 60 * 60 * 1000
	// maxInteger is JavaScript's largest exact integer.
	maxInteger = 1<<53 - 1
	// maxAttempt leaves the other bits of a generation free.
	maxAttempt = 1<<31 - 1
)

// Type is the field `type` of a message.
type Type string

// PeerID names a peer uniquely in its room, and stays when the room moves.
type PeerID string

// RequestID is a client's own name for one of its messages. The error of that message carries it.
type RequestID string

// Message is a message of either direction.
type Message interface{ kind() Type }

// TypeOf returns the type of m.
func TypeOf(m Message) Type { return m.kind() }

// Source is what a track shows.
type Source string

// The sources.
const (
	SourceMicrophone  Source = "microphone"
	SourceCamera      Source = "camera"
	SourceScreen      Source = "screen"
	SourceScreenAudio Source = "screen-audio"
)

// Sources returns all sources.
func Sources() []Source {
	return []Source{SourceMicrophone, SourceCamera, SourceScreen, SourceScreenAudio}
}

// Kind is the kind of a media line.
type Kind string

// The kinds.
const (
	KindAudio Kind = "audio"
	KindVideo Kind = "video"
)

// List is written as [] when it is nil, because clients loop over it.
type List[T any] []T

// Peer is an entry of the roster.
type Peer struct {
	Peer         PeerID `json:"peer"`
	Identity     string `json:"identity"`
	Name         string `json:"name"`
	AudioMuted   bool   `json:"audioMuted"`
	VideoMuted   bool   `json:"videoMuted"`
	ScreenShared bool   `json:"screenShared,omitempty"`
	ScreenAudio  bool   `json:"screenAudio,omitempty"`
	// HandRaised is in Unix milliseconds.
	HandRaised int64 `json:"handRaised,omitempty"`
	Moderator  bool  `json:"moderator,omitempty"`
	// Metadata and Attributes are those of the token.
	Metadata   string            `json:"metadata,omitempty"`
	Attributes map[string]string `json:"attributes,omitempty"`
}

// Slot says what a receiving m-line shows.
type Slot struct {
	Mid    string `json:"mid"`
	Kind   Kind   `json:"kind"`
	Peer   PeerID `json:"peer"`
	Source Source `json:"source"`
	// Paused says that the path is too narrow for it.
	Paused bool `json:"paused,omitempty"`
}

// Lack is a source that the client cannot decode.
type Lack struct {
	Peer   PeerID `json:"peer"`
	Source Source `json:"source"`
	Codec  string `json:"codec"`
}

// Sender is a sending m-line, or one layer of it.
type Sender struct {
	Mid     string `json:"mid"`
	Source  Source `json:"source"`
	Rid     string `json:"rid,omitempty"`
	SSRC    uint32 `json:"ssrc,omitempty"`
	RTXSSRC uint32 `json:"rtxSsrc,omitempty"`
}

// UnusedSlot is a receiving m-line on which nothing has come, as the last answer named it.
type UnusedSlot struct {
	Mid     string `json:"mid"`
	SSRC    uint32 `json:"ssrc"`
	RTXSSRC uint32 `json:"rtxSsrc,omitempty"`
}

// Stream is one source of one person.
type Stream struct {
	Peer   PeerID `json:"peer"`
	Source Source `json:"source"`
}

// Want is a size in device pixels. 0 x 0 means hidden.
type Want struct {
	Peer   PeerID `json:"peer"`
	Source Source `json:"source"`
	Width  uint32 `json:"width"`
	Height uint32 `json:"height"`
}

// Speaker is somebody who speaks, with a level from 0 to 1.
type Speaker struct {
	Peer  PeerID  `json:"peer"`
	Level float32 `json:"level"`
}

// Permissions are what the client's token permits.
type Permissions struct {
	Publish   bool  `json:"publish"`
	Subscribe bool  `json:"subscribe"`
	Chat      bool  `json:"chat"`
	Rename    bool  `json:"rename"`
	Watch     bool  `json:"watch"`
	Moderate  bool  `json:"moderate"`
	Message   Scope `json:"message,omitempty"`
	// Sources is absent if all are allowed.
	Sources []Source `json:"sources,omitempty"`
}

// Scope says to whom one may write. Empty means nobody.
type Scope string

// The scopes.
const (
	ScopeRoom     Scope = "room"
	ScopeAnywhere Scope = "anywhere"
)

// Act is what a moderator does.
type Act string

// The acts. Without a peer, mute and lower-hand are meant for all others. EndCall is always meant for everybody.
const (
	ActMute      Act = "mute"
	ActAskUnmute Act = "ask-unmute"
	ActLowerHand Act = "lower-hand"
	ActRemove    Act = "remove"
	ActGrant     Act = "grant"
	ActGiveUp    Act = "give-up"
	ActEndCall   Act = "end-call"
)

// Emojis returns the emojis that may be shown. Each is in every font since Unicode 8, and harmless.
func Emojis() []string { return []string{"👍", "👏", "❤️", "😂", "😮", "🎉"} }

// Reaction is an emoji that is shown for a moment.
type Reaction struct {
	Peer  PeerID `json:"peer"`
	Emoji string `json:"emoji"`
}

// ICEServer has the form of an RTCIceServer.
type ICEServer struct {
	URLs       []string `json:"urls"`
	Username   string   `json:"username,omitempty"`
	Credential string   `json:"credential,omitempty"`
}

// Placement tells a client where its room lives.
type Placement struct {
	Node  ring.NodeID `json:"node"`
	Epoch uint64      `json:"epoch"`
	// ScreenAudio says that the node knows that source. An older node would take it for the microphone.
	ScreenAudio bool `json:"screenAudio,omitempty"`
	// Data says that the node takes data channels. An older node rejects an offer that has them.
	Data bool `json:"data,omitempty"`
}
