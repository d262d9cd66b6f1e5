package wire

import (
	"encoding/json"

	"github.com/holdfast-rtc/holdfast/ring"
)

// Joined says that the session exists.
type Joined struct {
	Protocol int         `json:"protocol"`
	Room     ring.RoomID `json:"room"`
	Peer     PeerID      `json:"peer"`
	Identity string      `json:"identity"`
	Name     string      `json:"name"`
	Resume   string      `json:"resume"`
	Placement
	Seq    uint64     `json:"seq"`
	Roster List[Peer] `json:"roster"`
	ICEServers
	Permissions Permissions `json:"permissions"`
}

// Resumed says that the session lives on this signaling node now.
type Resumed struct {
	Placement
	Seq        uint64     `json:"seq"`
	Roster     List[Peer] `json:"roster"`
	Slots      List[Slot] `json:"slots"`
	Resume     string     `json:"resume"`
	MediaAlive bool       `json:"mediaAlive"`         // else the client must offer again
	Silenced   []Source   `json:"silenced,omitempty"` // what a moderator muted meanwhile
	ICEServers
}

// ICEServers are those of this signaling node. It answers AskICEServers, too.
type ICEServers struct {
	ICEServers List[ICEServer] `json:"iceServers"`
	ForMs      int64           `json:"iceServersForMs,omitempty"` // no end without it
}

// Answer answers the offer of that id.
type Answer struct {
	ID  string `json:"id"`
	SDP string `json:"sdp"`
	Placement
}

// OfferRejected says that an offer has no answer.
type OfferRejected struct {
	ID      string `json:"id"`
	Code    Code   `json:"code"`
	Message string `json:"message"`
	Epoch   uint64 `json:"epoch"`
}

// Slots is the whole slot table.
type Slots struct {
	Slots List[Slot] `json:"slots"`
	Lacks List[Lack] `json:"lacks,omitempty"` // pictures in no slot, because the client did not negotiate their codec
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

// Speakers are the loudest first.
type Speakers struct {
	Speakers List[Speaker] `json:"speakers"`
	Epoch    uint64        `json:"epoch"`
}

// Limited says whether pictures are smaller, or not sent, because the media node is near its ceiling. A joined or resumed client
// takes it for false until it is told.
type Limited struct {
	Limited bool   `json:"limited"`
	Epoch   uint64 `json:"epoch"`
}

// Chat is a line of the room's chat.
type Chat struct {
	Peer  PeerID `json:"peer"`
	Name  string `json:"name"`
	Text  string `json:"text"`
	ID    string `json:"id,omitempty"` // of the speaker's message
	At    int64  `json:"at"`           // Unix milliseconds of the node
	Seq   uint64 `json:"seq"`          // grows by one with each line of one node
	Epoch uint64 `json:"epoch"`
}

// PermissionsChanged says what the client may do from now on.
type PermissionsChanged struct {
	Permissions Permissions `json:"permissions"`
	Resume      string      `json:"resume"`
}

// MutedBy says that a moderator muted the client. It may unmute itself.
type MutedBy struct {
	Source Source `json:"source"`
	By     string `json:"by,omitempty"` // the moderator's name
	Epoch  uint64 `json:"epoch"`
}

// UnmuteAsked says that a moderator asks the client to unmute itself.
type UnmuteAsked struct {
	Source Source `json:"source"`
	By     string `json:"by,omitempty"`
	Epoch  uint64 `json:"epoch"`
}

// Reactions are those of a moment.
type Reactions struct {
	Reactions List[Reaction] `json:"reactions"`
	Epoch     uint64         `json:"epoch"`
}

// Restart asks for an offer, for the room moved.
type Restart struct {
	Placement
	Reason    string `json:"reason"`
	Attempts  int    `json:"attempts"`
	AttemptMs int    `json:"attemptMs"`
	// Live: the former node forwards for OverlapMs more. The client makes a second connection, and keeps the first until Settled.
	Live      bool `json:"live,omitempty"`
	OverlapMs int  `json:"overlapMs,omitempty"`
}

// Settled says that nobody needs the former node's media any more.
type Settled struct {
	Epoch uint64 `json:"epoch"`
}

// Reoffer asks for a new offer: what the client publishes cannot be forwarded.
type Reoffer struct {
	Mids   List[string] `json:"mids"` // sending m-lines
	Reason string       `json:"reason"`
	Epoch  uint64       `json:"epoch"`
}

// Error refuses something; the session goes on.
type Error struct {
	Code         Code   `json:"code"`
	Message      string `json:"message"`
	Retryable    bool   `json:"retryable"`
	RetryAfterMs int64  `json:"retryAfterMs,omitempty"`
}

// Connected says that the connection in no room exists.
type Connected struct {
	Protocol int    `json:"protocol"`
	Identity string `json:"identity"`
	Watch    bool   `json:"watch"` // the token allows it
	Message  bool   `json:"message,omitempty"`
}

// UserMessage is a direct message from somebody, wherever connected. The client drops what is not above the highest Seq
// that it has of From and Stream.
type UserMessage struct {
	From   string          `json:"from"`
	Name   string          `json:"name"`
	Kind   MessageKind     `json:"kind"`
	Body   json.RawMessage `json:"body"`
	Stream string          `json:"stream"`
	Seq    uint64          `json:"seq"`
	Room   string          `json:"room,omitempty"` // only people in this room got it
	At     int64           `json:"at"`             // Unix milliseconds of the sender's node
}

// MessageState is what became of a SendMessage for one of its receivers.
type MessageState struct {
	To      string `json:"to"`
	Stream  string `json:"stream"`
	Seq     uint64 `json:"seq"`
	State   string `json:"state"` // "accepted", "delivered", "offline", "gave_up" or "refused"
	Code    Code   `json:"code,omitempty"`
	Message string `json:"message,omitempty"`
}

// Presence says of watched users whether they are online: of all of them after a Watch, then of those who changed.
type Presence struct {
	Users List[UserPresence] `json:"users"`
}

// UserPresence is one of them. Times are Unix milliseconds of the store's clock.
type UserPresence struct {
	User     string `json:"user"`
	State    string `json:"state"` // "online", "offline" or "unknown"
	Since    int64  `json:"since,omitempty"`
	LastSeen int64  `json:"lastSeen,omitempty"`
}

// Waiting says that the room has no place yet; a Joined follows by itself.
type Waiting struct {
	Position   int    `json:"position"` // from 1
	EstimateMs int64  `json:"estimateMs,omitempty"`
	Reason     string `json:"reason"` // "full", "closed" or "no_capacity"
}

// Door is a room's, with the first 200 who wait. It answers moderators.
type Door struct {
	Cap    *int         `json:"cap,omitempty"`
	Closed bool         `json:"closed"`
	Inside int          `json:"inside"` // people with a place
	Length int          `json:"length"`
	Line   List[InLine] `json:"line"`
}

// InLine is somebody who waits.
type InLine struct {
	Identity string `json:"identity"`
	Name     string `json:"name,omitempty"`  // marked if the person chose it
	Since    int64  `json:"since,omitempty"` // Unix milliseconds; none for whom a moderator admitted
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

func (*Joined) kind() Type             { return "joined" }
func (*Resumed) kind() Type            { return "resumed" }
func (*ICEServers) kind() Type         { return "ice-servers" }
func (*Answer) kind() Type             { return "answer" }
func (*OfferRejected) kind() Type      { return "offer-rejected" }
func (*Slots) kind() Type              { return "slots" }
func (*PeerJoined) kind() Type         { return "peer-joined" }
func (*PeerUpdated) kind() Type        { return "peer-updated" }
func (*PeerLeft) kind() Type           { return "peer-left" }
func (*Roster) kind() Type             { return "roster" }
func (*Speakers) kind() Type           { return "speakers" }
func (*Chat) kind() Type               { return "chat" }
func (*Restart) kind() Type            { return "restart" }
func (*Settled) kind() Type            { return "settled" }
func (*Limited) kind() Type            { return "limited" }
func (*Reoffer) kind() Type            { return "reoffer" }
func (*Error) kind() Type              { return "error" }
func (*Pong) kind() Type               { return "pong" }
func (*Bye) kind() Type                { return "bye" }
func (*Connected) kind() Type          { return "connected" }
func (*Presence) kind() Type           { return "presence" }
func (*UserMessage) kind() Type        { return "message" }
func (*MessageState) kind() Type       { return "message-state" }
func (*PermissionsChanged) kind() Type { return "permissions" }
func (*MutedBy) kind() Type            { return "muted-by" }
func (*UnmuteAsked) kind() Type        { return "unmute-asked" }
func (*Reactions) kind() Type          { return "reactions" }
func (*Waiting) kind() Type            { return "waiting" }
func (*Door) kind() Type               { return "door" }
