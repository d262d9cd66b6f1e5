package wire

import "github.com/holdfast-rtc/holdfast/ring"

// Joined says that the session exists.
type Joined struct {
	Protocol    int             `json:"protocol"`
	Room        ring.RoomID     `json:"room"`
	Peer        PeerID          `json:"peer"`
	Identity    string          `json:"identity"`
	Name        string          `json:"name"`
	Resume      string          `json:"resume"`
	Placement                   // node and epoch
	Seq         uint64          `json:"seq"`
	Roster      List[Peer]      `json:"roster"`
	ICEServers  List[ICEServer] `json:"iceServers"`
	Permissions Permissions     `json:"permissions"`
}

// Resumed says that the session lives on this signaling node now.
type Resumed struct {
	Placement
	Seq        uint64     `json:"seq"`
	Roster     List[Peer] `json:"roster"`
	Slots      List[Slot] `json:"slots"`
	Resume     string     `json:"resume"`
	MediaAlive bool       `json:"mediaAlive"` // when false the client must offer again
}

// Answer is the answer to the offer of that id.
type Answer struct {
	ID  string `json:"id"`
	SDP string `json:"sdp"`
	Placement
}

// OfferRejected says that the node could not answer this offer.
type OfferRejected struct {
	ID      string `json:"id"`
	Code    Code   `json:"code"` // CodeBadOffer, CodeTooManyMessages or CodeInternal
	Message string `json:"message"`
	Epoch   uint64 `json:"epoch"`
}

// Slots is the whole slot table.
type Slots struct {
	Slots List[Slot] `json:"slots"`
	Epoch uint64     `json:"epoch"`
}

// PeerJoined adds a peer to the roster.
type PeerJoined struct {
	Peer  Peer   `json:"peer"`
	Epoch uint64 `json:"epoch"`
	Seq   uint64 `json:"seq"`
}

// PeerUpdated replaces a peer in the roster.
type PeerUpdated struct {
	Peer  Peer   `json:"peer"`
	Epoch uint64 `json:"epoch"`
	Seq   uint64 `json:"seq"`
}

// PeerLeft takes a peer off the roster.
type PeerLeft struct {
	Peer  PeerID `json:"peer"`
	Epoch uint64 `json:"epoch"`
	Seq   uint64 `json:"seq"`
}

// Roster replaces the client's roster.
type Roster struct {
	Roster List[Peer] `json:"roster"`
	Epoch  uint64     `json:"epoch"`
	Seq    uint64     `json:"seq"`
}

// Speakers says who speaks, loudest first.
type Speakers struct {
	Speakers List[Speaker] `json:"speakers"`
	Epoch    uint64        `json:"epoch"`
}

// Chat is a line of the room's chat.
type Chat struct {
	Peer  PeerID `json:"peer"`
	Name  string `json:"name"`
	Text  string `json:"text"`
	ID    string `json:"id,omitempty"` // of the speaker's message
	At    int64  `json:"at"`           // Unix milliseconds, by the node's clock
	Seq   uint64 `json:"seq"`          // grows by one with each line of one node
	Epoch uint64 `json:"epoch"`
}

// Restart says that the room moved and asks for an offer now.
type Restart struct {
	Placement
	Reason    string `json:"reason"`
	Attempts  int    `json:"attempts"`
	AttemptMs int    `json:"attemptMs"`
}

// Reasons of a Reoffer.
const (
	ReofferSilent     = "silent"      // nothing comes of a source that is not muted
	ReofferUnplaced   = "unplaced"    // packets belong to no track
	ReofferNoKeyframe = "no-keyframe" // no keyframe comes
	ReofferCodec      = "codec"       // somebody did not negotiate the codec: send VP8
)

// Reoffer asks for a new offer: what the client publishes cannot be forwarded.
type Reoffer struct {
	Mids   List[string] `json:"mids"` // its sending m-lines
	Reason string       `json:"reason"`
	Epoch  uint64       `json:"epoch"`
}

// Error says that something was refused; the session goes on.
type Error struct {
	Code         Code   `json:"code"`
	Message      string `json:"message"`
	Retryable    bool   `json:"retryable"`
	RetryAfterMs int64  `json:"retryAfterMs,omitempty"`
}

// Pong answers a Ping.
type Pong struct {
	T float64 `json:"t"`
}

// Bye ends the session for good.
type Bye struct {
	Code    Code   `json:"code"`
	Message string `json:"message"`
}

// Type implements Message.
func (*Joined) Type() Type { return "joined" }

// Type implements Message.
func (*Resumed) Type() Type { return "resumed" }

// Type implements Message.
func (*Answer) Type() Type { return "answer" }

// Type implements Message.
func (*OfferRejected) Type() Type { return "offer-rejected" }

// Type implements Message.
func (*Slots) Type() Type { return "slots" }

// Type implements Message.
func (*PeerJoined) Type() Type { return "peer-joined" }

// Type implements Message.
func (*PeerUpdated) Type() Type { return "peer-updated" }

// Type implements Message.
func (*PeerLeft) Type() Type { return "peer-left" }

// Type implements Message.
func (*Roster) Type() Type { return "roster" }

// Type implements Message.
func (*Speakers) Type() Type { return "speakers" }

// Type implements Message.
func (*Chat) Type() Type { return "chat" }

// Type implements Message.
func (*Restart) Type() Type { return "restart" }

// Type implements Message.
func (*Reoffer) Type() Type { return "reoffer" }

// Type implements Message.
func (*Error) Type() Type { return "error" }

// Type implements Message.
func (*Pong) Type() Type { return "pong" }

// Type implements Message.
func (*Bye) Type() Type { return "bye" }
