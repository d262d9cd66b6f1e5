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
	// RoomMetadata is the application's, opaque. Without it there is none, or it follows in RoomUpdated.
	RoomMetadata *string `json:"roomMetadata,omitempty"`
	// Audience is as in Audience.
	Audience int `json:"audience,omitempty"`
}

// Resumed moves the session to this signaling node.
type Resumed struct {
	Placement
	Seq    uint64     `json:"seq"`
	Roster List[Peer] `json:"roster"`
	Slots  List[Slot] `json:"slots"`
	Resume string     `json:"resume"`
	// MediaAlive says that the media connection lives. Otherwise the client must offer again.
	MediaAlive bool     `json:"mediaAlive"`
	Silenced   []Source `json:"silenced,omitempty"`
	ICEServers
	// RoomMetadata is absent if the media node does not know it yet: what the client knows stays.
	RoomMetadata *string `json:"roomMetadata,omitempty"`
	// Audience is as in Audience.
	Audience int `json:"audience,omitempty"`
}

// ICEServers are the ICE servers of this signaling node.
type ICEServers struct {
	ICEServers List[ICEServer] `json:"iceServers"`
	// ForMs is 0 if the servers have no end.
	ForMs int64 `json:"iceServersForMs,omitempty"`
}

// Answer answers the Offer with the same ID.
type Answer struct {
	ID  string `json:"id"`
	SDP string `json:"sdp"`
	Placement
}

// OfferRejected comes in place of an Answer.
type OfferRejected struct {
	ID      string `json:"id"`
	Code    Code   `json:"code"`
	Message string `json:"message"`
	Epoch   uint64 `json:"epoch"`
}

// Slots is the whole table of slots.
// Node is set when the client's media goes on under another pin, perhaps at another node: the client does nothing but take
// both.
type Slots struct {
	Slots List[Slot]  `json:"slots"`
	Lacks List[Lack]  `json:"lacks,omitempty"`
	Node  ring.NodeID `json:"node,omitempty"`
	Epoch uint64      `json:"epoch"`
}

// PeerJoined adds a peer to the roster.
type PeerJoined struct {
	Peer  Peer   `json:"peer"`
	Epoch uint64 `json:"epoch"`
	Seq   uint64 `json:"seq"`
}

// PeerUpdated replaces a peer of the roster.
type PeerUpdated struct {
	Peer  Peer   `json:"peer"`
	Epoch uint64 `json:"epoch"`
	Seq   uint64 `json:"seq"`
}

// PeerLeft removes a peer from the roster.
type PeerLeft struct {
	Peer  PeerID `json:"peer"`
	Epoch uint64 `json:"epoch"`
	Seq   uint64 `json:"seq"`
}

// RosterChanges are several changes of the roster, of different peers. Entries join or replace, Left leave.
type RosterChanges struct {
	Entries List[Peer]   `json:"entries"`
	Left    List[PeerID] `json:"left"`
	Epoch   uint64       `json:"epoch"`
	Seq     uint64       `json:"seq"`
}

// Roster replaces the whole roster.
type Roster struct {
	Roster List[Peer] `json:"roster"`
	Epoch  uint64     `json:"epoch"`
	Seq    uint64     `json:"seq"`
}

// Audience counts the other people who are in the room and not in the roster: in a large room, some of those who only watch.
type Audience struct {
	Others int    `json:"others"`
	Epoch  uint64 `json:"epoch"`
}

// RoomUpdated says that the room's metadata are others now.
type RoomUpdated struct {
	Metadata string `json:"metadata"`
	Epoch    uint64 `json:"epoch"`
}

// Speakers lists who speaks, the loudest first.
type Speakers struct {
	Speakers List[Speaker] `json:"speakers"`
	Epoch    uint64        `json:"epoch"`
}

// Limited says whether the media node holds back video. At first it does not.
type Limited struct {
	Limited bool   `json:"limited"`
	Epoch   uint64 `json:"epoch"`
}

// Chat is one line of the room's chat.
type Chat struct {
	Peer PeerID `json:"peer"`
	Name string `json:"name"`
	Text string `json:"text"`
	ID   string `json:"id,omitempty"`
	// At is in Unix milliseconds.
	At int64 `json:"at"`
	// Seq grows by one with each line at a media node.
	Seq   uint64 `json:"seq"`
	Epoch uint64 `json:"epoch"`
}

// PermissionsChanged replaces the client's Permissions.
type PermissionsChanged struct {
	Permissions Permissions `json:"permissions"`
	Resume      string      `json:"resume"`
}

// MutedBy says that a moderator muted a source. The client may unmute it.
type MutedBy struct {
	Source Source `json:"source"`
	By     string `json:"by,omitempty"`
	Epoch  uint64 `json:"epoch"`
}

// UnmuteAsked says that a moderator asks the client to unmute.
type UnmuteAsked struct {
	Source Source `json:"source"`
	By     string `json:"by,omitempty"`
	Epoch  uint64 `json:"epoch"`
}

// Reactions are the emojis of one moment.
type Reactions struct {
	Reactions List[Reaction] `json:"reactions"`
	Epoch     uint64         `json:"epoch"`
}

// Restart says that the room has moved: the client offers again.
type Restart struct {
	Placement
	Reason    string `json:"reason"`
	Attempts  int    `json:"attempts"`
	AttemptMs int    `json:"attemptMs"`
	// Live says that the former node forwards for OverlapMs more. The client uses both connections until Settled.
	Live      bool `json:"live,omitempty"`
	OverlapMs int  `json:"overlapMs,omitempty"`
}

// Settled says that nobody needs the former node any more.
type Settled struct {
	Epoch uint64 `json:"epoch"`
}

// Reoffer asks for a new offer, because the published media cannot be forwarded.
type Reoffer struct {
	Mids   List[string] `json:"mids"`
	Reason string       `json:"reason"`
	Epoch  uint64       `json:"epoch"`
}

// Rests are the layers of the client that nobody shows, all of them: see Offer.Rests.
type Rests struct {
	Resting List[RestingLayers] `json:"resting"`
	Epoch   uint64              `json:"epoch"`
}

// RestingLayers are the layers of an m-line that rest.
type RestingLayers struct {
	Mid  string       `json:"mid"`
	RIDs List[string] `json:"rids"`
}

// Error refuses a request. The session goes on.
type Error struct {
	Code         Code   `json:"code"`
	Message      string `json:"message"`
	Retryable    bool   `json:"retryable"`
	RetryAfterMs int64  `json:"retryAfterMs,omitempty"`
	// Request is the id of the message that was refused.
	Request RequestID `json:"request,omitempty"`
}

// Connected answers Connect.
type Connected struct {
	Protocol int    `json:"protocol"`
	Identity string `json:"identity"`
	Watch    bool   `json:"watch"`
	Message  bool   `json:"message,omitempty"`
}

// UserMessage is a direct message. The client drops it unless its Seq is above the highest one of the same From and
// Stream.
type UserMessage struct {
	From   string          `json:"from"`
	Name   string          `json:"name"`
	Kind   MessageKind     `json:"kind"`
	Body   json.RawMessage `json:"body"`
	Stream string          `json:"stream"`
	Seq    uint64          `json:"seq"`
	// Room is empty unless the message went to this room alone.
	Room string `json:"room,omitempty"`
	// At is in Unix milliseconds.
	At int64 `json:"at"`
}

// MessageState says what became of a direct message at one receiver.
type MessageState struct {
	To     string `json:"to"`
	Stream string `json:"stream"`
	Seq    uint64 `json:"seq"`
	// State is "accepted", "delivered", "offline", "gave_up" or "refused".
	State   string `json:"state"`
	Code    Code   `json:"code,omitempty"`
	Message string `json:"message,omitempty"`
}

// Presence lists all watched users at first, and later the changes.
type Presence struct {
	Users List[UserPresence] `json:"users"`
}

// UserPresence has times in Unix milliseconds of the store's clock.
type UserPresence struct {
	User string `json:"user"`
	// State is "online", "offline" or "unknown".
	State    string `json:"state"`
	Since    int64  `json:"since,omitempty"`
	LastSeen int64  `json:"lastSeen,omitempty"`
}

// Waiting says that there is no place yet. Joined follows when there is one.
type Waiting struct {
	// Position begins at 1.
	Position   int   `json:"position"`
	EstimateMs int64 `json:"estimateMs,omitempty"`
	// Reason is "full", "closed" or "no_capacity".
	Reason string `json:"reason"`
}

// Door answers a moderator. Line has at most the first 200.
type Door struct {
	Cap    *int         `json:"cap,omitempty"`
	Closed bool         `json:"closed"`
	Inside int          `json:"inside"`
	Length int          `json:"length"`
	Line   List[InLine] `json:"line"`
}

// InLine is one person in line.
type InLine struct {
	Identity string `json:"identity"`
	Name     string `json:"name,omitempty"`
	// Since is in Unix milliseconds; 0 for a person who was let in.
	Since int64 `json:"since,omitempty"`
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
func (*RosterChanges) kind() Type      { return "roster-changes" }
func (*Roster) kind() Type             { return "roster" }
func (*Speakers) kind() Type           { return "speakers" }
func (*Chat) kind() Type               { return "chat" }
func (*Restart) kind() Type            { return "restart" }
func (*Settled) kind() Type            { return "settled" }
func (*Limited) kind() Type            { return "limited" }
func (*Audience) kind() Type           { return "audience" }
func (*RoomUpdated) kind() Type        { return "room-updated" }
func (*Reoffer) kind() Type            { return "reoffer" }
func (*Rests) kind() Type              { return "rests" }
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
