// Package wire is the protocol of docs/PROTOCOL.md, version 1: one struct per message, one JSON object per text frame.
//
// What Decode returns is within the limits and has every required field. Unknown fields are ignored, unknown types told apart.
package wire

import "github.com/holdfast-rtc/holdfast/ring"

// Subprotocol is the WebSocket's.
const Subprotocol = "holdfast.v1"

// Version is told in `joined`.
const Version = 1

// For clients.
const (
	MaxMessageBytes = 256 << 10
	maxSDPBytes     = 192 << 10
	maxResumeBytes  = 32 << 10
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
	MaxWatched      = 500
	maxUserBytes    = 256
	MaxReceivers    = 50
	MaxBodyBytes    = 8 << 10
	maxStreamBytes  = 64
	maxReceived     = 200
	maxGapMs        = 24 * 60 * 60 * 1000
	// JavaScript's largest.
	maxInteger = 1<<53 - 1
	// Generations need the other bits.
	maxAttempt = 1<<31 - 1
)

// Type is a message's `type`.
type Type string

// PeerID is unique in its room, and kept across nodes.
type PeerID string

// Message is of either direction.
type Message interface{ kind() Type }

// TypeOf returns m's type.
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

// Sources lists all.
func Sources() []Source {
	return []Source{SourceMicrophone, SourceCamera, SourceScreen, SourceScreenAudio}
}

// Kind is a media line's.
type Kind string

// The kinds.
const (
	KindAudio Kind = "audio"
	KindVideo Kind = "video"
)

// List is [] in JSON when nil: clients loop over it.
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
	HandRaised   int64  `json:"handRaised,omitempty"` // Unix milliseconds
	Moderator    bool   `json:"moderator,omitempty"`
}

// Slot is what a receiving m-line shows.
type Slot struct {
	Mid    string `json:"mid"`
	Kind   Kind   `json:"kind"`
	Peer   PeerID `json:"peer"`
	Source Source `json:"source"`
	Paused bool   `json:"paused,omitempty"` // path too narrow
}

// Lack is a source that the client cannot decode.
type Lack struct {
	Peer   PeerID `json:"peer"`
	Source Source `json:"source"`
	Codec  string `json:"codec"`
}

// Sender is a sending m-line or a layer of it.
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

// Stream is somebody's source.
type Stream struct {
	Peer   PeerID `json:"peer"`
	Source Source `json:"source"`
}

// Want is in device pixels; 0 x 0 is hidden.
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

// Permissions are the token's.
type Permissions struct {
	Publish   bool     `json:"publish"`
	Subscribe bool     `json:"subscribe"`
	Chat      bool     `json:"chat"`
	Rename    bool     `json:"rename"`
	Watch     bool     `json:"watch"`
	Moderate  bool     `json:"moderate"`
	Message   Scope    `json:"message,omitempty"`
	Sources   []Source `json:"sources,omitempty"` // absent: all
}

// Scope is whom one may write to; empty: nobody.
type Scope string

// The scopes.
const (
	ScopeRoom     Scope = "room"
	ScopeAnywhere Scope = "anywhere"
)

// Act is a moderator's.
type Act string

// Without a peer, mute and lower-hand are for all others.
const (
	ActMute      Act = "mute"
	ActAskUnmute Act = "ask-unmute"
	ActLowerHand Act = "lower-hand"
	ActRemove    Act = "remove"
	ActGrant     Act = "grant"
	ActGiveUp    Act = "give-up"
)

// Emojis are in every font since Unicode 8, and harmless.
func Emojis() []string { return []string{"👍", "👏", "❤️", "😂", "😮", "🎉"} }

// Reaction is shown briefly.
type Reaction struct {
	Peer  PeerID `json:"peer"`
	Emoji string `json:"emoji"`
}

// ICEServer is an RTCIceServer.
type ICEServer struct {
	URLs       []string `json:"urls"`
	Username   string   `json:"username,omitempty"`
	Credential string   `json:"credential,omitempty"`
}

// Placement is a pin, for clients.
type Placement struct {
	Node  ring.NodeID `json:"node"`
	Epoch uint64      `json:"epoch"`
	// Older nodes take SourceScreenAudio for the microphone.
	ScreenAudio bool `json:"screenAudio,omitempty"`
}
