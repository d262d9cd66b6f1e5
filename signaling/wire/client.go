package wire

import "encoding/json"

// Join begins a session.
type Join struct {
	Token string `json:"token"`
	Room  string `json:"room,omitempty"` // must match the token's
	Name  string `json:"name,omitempty"` // for tokens without a name
	Wait  bool   `json:"wait,omitempty"` // in line, if the room is full
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
	Slots   []Slot       `json:"slots,omitempty"` // the client's table
}

// View is what the page shows, most important first.
type View struct {
	Wants List[Want] `json:"wants"`
}

// Mute is of one source.
type Mute struct {
	Source Source `json:"source"`
	Muted  bool   `json:"muted"`
}

// How a restart ended.
const (
	HowRestart       = "restart" // the same RTCPeerConnection
	HowNewConnection = "new-connection"
	HowLive          = "live" // a second one, while the first went on
)

// Migrated means that media flows again after a restart.
type Migrated struct {
	Epoch   uint64   `json:"epoch"`
	Attempt uint64   `json:"attempt"`
	How     string   `json:"how"`
	GapMs   uint64   `json:"gapMs"` // longest gap of a stream that runs again
	Lost    []Stream `json:"lost,omitempty"`
}

// Stalled means that nothing arrives.
type Stalled struct {
	Epoch    uint64 `json:"epoch"`
	SilentMs uint64 `json:"silentMs"`
}

// Refresh names slots that show nothing.
type Refresh struct {
	Mids List[string] `json:"mids"`
}

// Ping asks for a Pong.
type Ping struct {
	T    float64    `json:"t"`
	Path *MediaPath `json:"path,omitempty"` // it has changed
}

// The ways of media, straight to the node or through a relay. "" is none that leads there.
const (
	WayUDP  = "UDP"
	WayTCP  = "TCP"
	WayTURN = "TURN"
)

// MediaPath is by which way media goes, and which of those that were tried have answered.
type MediaPath struct {
	Way  string `json:"way"`
	UDP  *bool  `json:"udp,omitempty"`
	TCP  *bool  `json:"tcp,omitempty"`
	TURN *bool  `json:"turn,omitempty"`
}

// AskICEServers renews them before they end.
type AskICEServers struct{}

// Say is for the room's chat.
type Say struct {
	Text string `json:"text"`
	ID   string `json:"id,omitempty"` // marks a repeated line
}

// Rename changes the shown name.
type Rename struct {
	Name string `json:"name"`
}

// Moderate is by who runs the room.
type Moderate struct {
	Act    Act    `json:"act"`
	Peer   PeerID `json:"peer,omitempty"`
	Source Source `json:"source,omitempty"` // of mute and ask-unmute
}

// Hand is one's own.
type Hand struct {
	Raised bool `json:"raised"`
}

// React shows one of Emojis for a moment.
type React struct {
	Emoji string `json:"emoji"`
}

// Connect begins a connection in no room: its user is online.
type Connect struct {
	Token string `json:"token"`
}

// Watch replaces whom the client is told of.
type Watch struct {
	Users List[string] `json:"users"`
}

// MessageKind is what a direct message is for.
type MessageKind string

// The kinds. The cluster reads no bodies.
const (
	MessageText   MessageKind = "text"   // for a person to read
	MessageRing   MessageKind = "ring"   // asks into a room
	MessageAnswer MessageKind = "answer" // to a ring
	MessageApp    MessageKind = "app"    // the application's own
	MessageNotice MessageKind = "notice" // from who runs room or cluster, by REST
)

// SendMessage goes to users wherever connected. Unanswered ones are repeated on the next connection, in order, under
// the same Stream and Seq.
type SendMessage struct {
	To     List[string]    `json:"to"`
	Kind   MessageKind     `json:"kind"`
	Body   json.RawMessage `json:"body"`
	Stream string          `json:"stream"` // one life of the client
	Seq    uint64          `json:"seq"`    // grows
}

// Received is what the client has of others' streams.
type Received struct {
	UpTo List[StreamMark] `json:"upTo"`
}

// StreamMark is a stream's highest Seq.
type StreamMark struct {
	From   string `json:"from"`
	Stream string `json:"stream"`
	Seq    uint64 `json:"seq"`
}

// SetDoor is a moderator's; empty asks for the door.
type SetDoor struct {
	Cap    *int  `json:"cap,omitempty"` // -1 lifts it
	Closed *bool `json:"closed,omitempty"`
}

// LetIn is a moderator's: somebody goes first.
type LetIn struct {
	Identity string `json:"identity"`
}

// TurnAway is a moderator's: somebody leaves the line.
type TurnAway struct {
	Identity string `json:"identity"`
}

// Leave ends the session.
type Leave struct {
	Back bool `json:"back,omitempty"` // perhaps back at once: a place in a full room is kept for 10 s
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
