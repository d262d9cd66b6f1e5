package wire

import (
	"encoding/json"

	"github.com/holdfast-rtc/holdfast/ring"
)

// Joined begins the session.
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

// Resumed moves the session to this signaling node.
type Resumed struct {
	Placement
	Seq        uint64     `json:"seq"`
	Roster     List[Peer] `json:"roster"`
	Slots      List[Slot] `json:"slots"`
	Resume     string     `json:"resume"`
	MediaAlive bool       `json:"mediaAlive"` // else offer again
	Silenced   []Source   `json:"silenced,omitempty"`
	ICEServers
}

// ICEServers are this signaling node's.
type ICEServers struct {
	ICEServers List[ICEServer] `json:"iceServers"`
	ForMs      int64           `json:"iceServersForMs,omitempty"` // 0: no end
}

// Answer is to the Offer of that ID.
type Answer struct {
	ID  string `json:"id"`
	SDP string `json:"sdp"`
	Placement
}

// OfferRejected replaces an Answer.
type OfferRejected struct {
	ID      string `json:"id"`
	Code    Code   `json:"code"`
	Message string `json:"message"`
	Epoch   uint64 `json:"epoch"`
}

// Slots is the whole table.
type Slots struct {
	Slots List[Slot] `json:"slots"`
	Lacks List[Lack] `json:"lacks,omitempty"`
	Epoch uint64     `json:"epoch"`
}

// PeerJoined adds to the roster.
type PeerJoined struct {
	Peer  Peer   `json:"peer"`
	Epoch uint64 `json:"epoch"`
	Seq   uint64 `json:"seq"`
}

// PeerUpdated replaces in the roster.
type PeerUpdated struct {
	Peer  Peer   `json:"peer"`
	Epoch uint64 `json:"epoch"`
	Seq   uint64 `json:"seq"`
}

// PeerLeft removes from the roster.
type PeerLeft struct {
	Peer  PeerID `json:"peer"`
	Epoch uint64 `json:"epoch"`
	Seq   uint64 `json:"seq"`
}

// Roster replaces all.
type Roster struct {
	Roster List[Peer] `json:"roster"`
	Epoch  uint64     `json:"epoch"`
	Seq    uint64     `json:"seq"`
}

// Speakers has the loudest first.
type Speakers struct {
	Speakers List[Speaker] `json:"speakers"`
	Epoch    uint64        `json:"epoch"`
}

// Limited means that the media node holds back video. Initially false.
type Limited struct {
	Limited bool   `json:"limited"`
	Epoch   uint64 `json:"epoch"`
}

// Chat is a line of chat.
type Chat struct {
	Peer  PeerID `json:"peer"`
	Name  string `json:"name"`
	Text  string `json:"text"`
	ID    string `json:"id,omitempty"`
	At    int64  `json:"at"`  // Unix milliseconds
	Seq   uint64 `json:"seq"` // grows by one a line of a node
	Epoch uint64 `json:"epoch"`
}

// PermissionsChanged replaces Permissions.
type PermissionsChanged struct {
	Permissions Permissions `json:"permissions"`
	Resume      string      `json:"resume"`
}

// MutedBy a moderator: the client may unmute itself.
type MutedBy struct {
	Source Source `json:"source"`
	By     string `json:"by,omitempty"`
	Epoch  uint64 `json:"epoch"`
}

// UnmuteAsked by a moderator.
type UnmuteAsked struct {
	Source Source `json:"source"`
	By     string `json:"by,omitempty"`
	Epoch  uint64 `json:"epoch"`
}

// Reactions of one moment.
type Reactions struct {
	Reactions List[Reaction] `json:"reactions"`
	Epoch     uint64         `json:"epoch"`
}

// Restart means that the room moved: offer again.
type Restart struct {
	Placement
	Reason    string `json:"reason"`
	Attempts  int    `json:"attempts"`
	AttemptMs int    `json:"attemptMs"`
	// If Live, the former node forwards for OverlapMs more: use both connections until Settled.
	Live      bool `json:"live,omitempty"`
	OverlapMs int  `json:"overlapMs,omitempty"`
}

// Settled means that nobody needs the former node.
type Settled struct {
	Epoch uint64 `json:"epoch"`
}

// Reoffer means that the published media cannot be forwarded.
type Reoffer struct {
	Mids   List[string] `json:"mids"`
	Reason string       `json:"reason"`
	Epoch  uint64       `json:"epoch"`
}

// Error refuses; the session goes on.
type Error struct {
	Code         Code   `json:"code"`
	Message      string `json:"message"`
	Retryable    bool   `json:"retryable"`
	RetryAfterMs int64  `json:"retryAfterMs,omitempty"`
}

// Connected is in no room.
type Connected struct {
	Protocol int    `json:"protocol"`
	Identity string `json:"identity"`
	Watch    bool   `json:"watch"`
	Message  bool   `json:"message,omitempty"`
}

// UserMessage is dropped if not above the highest Seq of From and Stream.
type UserMessage struct {
	From   string          `json:"from"`
	Name   string          `json:"name"`
	Kind   MessageKind     `json:"kind"`
	Body   json.RawMessage `json:"body"`
	Stream string          `json:"stream"`
	Seq    uint64          `json:"seq"`
	Room   string          `json:"room,omitempty"` // if only this room got it
	At     int64           `json:"at"`             // Unix milliseconds
}

// MessageState is for one receiver.
type MessageState struct {
	To      string `json:"to"`
	Stream  string `json:"stream"`
	Seq     uint64 `json:"seq"`
	State   string `json:"state"` // "accepted", "delivered", "offline", "gave_up" or "refused"
	Code    Code   `json:"code,omitempty"`
	Message string `json:"message,omitempty"`
}

// Presence has all watched users, then changes.
type Presence struct {
	Users List[UserPresence] `json:"users"`
}

// UserPresence has the store's Unix milliseconds.
type UserPresence struct {
	User     string `json:"user"`
	State    string `json:"state"` // "online", "offline" or "unknown"
	Since    int64  `json:"since,omitempty"`
	LastSeen int64  `json:"lastSeen,omitempty"`
}

// Waiting means no place yet; Joined follows.
type Waiting struct {
	Position   int    `json:"position"` // from 1
	EstimateMs int64  `json:"estimateMs,omitempty"`
	Reason     string `json:"reason"` // "full", "closed" or "no_capacity"
}

// Door answers moderators; Line has the first 200.
type Door struct {
	Cap    *int         `json:"cap,omitempty"`
	Closed bool         `json:"closed"`
	Inside int          `json:"inside"`
	Length int          `json:"length"`
	Line   List[InLine] `json:"line"`
}

// InLine waits.
type InLine struct {
	Identity string `json:"identity"`
	Name     string `json:"name,omitempty"`
	Since    int64  `json:"since,omitempty"` // Unix milliseconds; 0 if admitted
}

// Pong answers a Ping.
type Pong struct {
	T float64 `json:"t"`
}

// Bye ends the session.
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
