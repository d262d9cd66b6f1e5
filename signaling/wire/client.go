package wire

import "encoding/json"

// Join begins a session.
type Join struct {
	Token string `json:"token"`
	Room  string `json:"room,omitempty"`
	Name  string `json:"name,omitempty"` // if the token has none
	Wait  bool   `json:"wait,omitempty"`
}

// Resume continues a session on a new socket.
type Resume struct {
	Resume  string `json:"resume"`
	Attempt uint64 `json:"attempt"` // grows at every attach; the join was 1
	Epoch   uint64 `json:"epoch,omitempty"`
	Seq     uint64 `json:"seq,omitempty"`
}

// Offer is SDP.
type Offer struct {
	ID      string       `json:"id"`
	SDP     string       `json:"sdp"`
	Fresh   bool         `json:"fresh"` // from a new RTCPeerConnection
	Senders List[Sender] `json:"senders"`
	Slots   []Slot       `json:"slots,omitempty"`
	Unused  []UnusedSlot `json:"unused,omitempty"`
}

// View is what the page shows, most important first.
type View struct {
	Wants List[Want] `json:"wants"`
}

// Mute changes one source.
type Mute struct {
	Source Source `json:"source"`
	Muted  bool   `json:"muted"`
}

// How a restart ended.
const (
	HowRestart       = "restart"
	HowNewConnection = "new-connection"
	HowLive          = "live"
)

// Migrated ends a restart.
type Migrated struct {
	Epoch   uint64   `json:"epoch"`
	Attempt uint64   `json:"attempt"`
	How     string   `json:"how"`
	GapMs   uint64   `json:"gapMs"`
	Lost    []Stream `json:"lost,omitempty"`
}

// Stalled means that nothing arrives.
type Stalled struct {
	Epoch    uint64 `json:"epoch"`
	SilentMs uint64 `json:"silentMs"`
}

// Refresh names frozen slots.
type Refresh struct {
	Mids List[string] `json:"mids"`
}

// Ping asks for a Pong.
type Ping struct {
	T    float64    `json:"t"`
	Path *MediaPath `json:"path,omitempty"`
}

// The ways in which media reach the node. An empty text means that no way works.
const (
	WayUDP  = "UDP"
	WayTCP  = "TCP"
	WayTURN = "TURN"
)

// MediaPath is media's way, and which tried ways answer.
type MediaPath struct {
	Way  string `json:"way"`
	UDP  *bool  `json:"udp,omitempty"`
	TCP  *bool  `json:"tcp,omitempty"`
	TURN *bool  `json:"turn,omitempty"`
}

// AskICEServers renews them.
type AskICEServers struct{}

// Say goes to the room's chat.
type Say struct {
	Text string `json:"text"`
	ID   string `json:"id,omitempty"` // marks a repetition
}

// Rename changes the shown name.
type Rename struct {
	Name string `json:"name"`
}

// Moderate is a moderator's act.
type Moderate struct {
	Act    Act    `json:"act"`
	Peer   PeerID `json:"peer,omitempty"`
	Source Source `json:"source,omitempty"`
}

// Hand raises or lowers the sender's own hand.
type Hand struct {
	Raised bool `json:"raised"`
}

// React shows one of Emojis.
type React struct {
	Emoji string `json:"emoji"`
}

// Connect is online, in no room.
type Connect struct {
	Token string `json:"token"`
}

// Watch replaces the watched users.
type Watch struct {
	Users List[string] `json:"users"`
}

// MessageKind is a direct message's purpose.
type MessageKind string

// Bodies are opaque.
const (
	MessageText   MessageKind = "text"
	MessageRing   MessageKind = "ring"
	MessageAnswer MessageKind = "answer"
	MessageApp    MessageKind = "app"
	MessageNotice MessageKind = "notice" // by REST
)

// SendMessage goes to users anywhere. Unanswered ones are repeated in order on the next connection.
type SendMessage struct {
	To     List[string]    `json:"to"`
	Kind   MessageKind     `json:"kind"`
	Body   json.RawMessage `json:"body"`
	Stream string          `json:"stream"` // one life of the client
	Seq    uint64          `json:"seq"`    // grows
}

// Received acknowledges streams.
type Received struct {
	UpTo List[StreamMark] `json:"upTo"`
}

// StreamMark is a stream's highest Seq.
type StreamMark struct {
	From   string `json:"from"`
	Stream string `json:"stream"`
	Seq    uint64 `json:"seq"`
}

// SetDoor is a moderator's; empty asks for the Door.
type SetDoor struct {
	Cap    *int  `json:"cap,omitempty"` // -1 lifts it
	Closed *bool `json:"closed,omitempty"`
}

// LetIn puts somebody first.
type LetIn struct {
	Identity string `json:"identity"`
}

// TurnAway removes somebody from the line.
type TurnAway struct {
	Identity string `json:"identity"`
}

// Leave ends the session.
type Leave struct {
	Back bool `json:"back,omitempty"` // a full room keeps the place for 10 s
}

func (*Join) kind() Type     { return "join" }
func (*Resume) kind() Type   { return "resume" }
func (*Offer) kind() Type    { return "offer" }
func (*View) kind() Type     { return "view" }
func (*Mute) kind() Type     { return "mute" }
func (*Migrated) kind() Type { return "migrated" }
func (*Stalled) kind() Type  { return "stalled" }
func (*Refresh) kind() Type  { return "refresh" }
func (*Ping) kind() Type     { return "ping" }

func (*AskICEServers) kind() Type { return "ice-servers" }

func (*Say) kind() Type      { return "chat" }
func (*Rename) kind() Type   { return "rename" }
func (*Moderate) kind() Type { return "moderate" }
func (*Hand) kind() Type     { return "hand" }
func (*React) kind() Type    { return "reaction" }
func (*Leave) kind() Type    { return "leave" }
func (*SetDoor) kind() Type  { return "door" }
func (*LetIn) kind() Type    { return "let-in" }
func (*TurnAway) kind() Type { return "turn-away" }
func (*Connect) kind() Type  { return "connect" }
func (*Watch) kind() Type    { return "watch" }

func (*SendMessage) kind() Type { return "message" }
func (*Received) kind() Type    { return "received" }
