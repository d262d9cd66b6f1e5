package wire

import "encoding/json"

// Join begins a session.
type Join struct {
	Token string `json:"token"`
	Room  string `json:"room,omitempty"`
	// Name is used if the token has none.
	Name string `json:"name,omitempty"`
	Wait bool   `json:"wait,omitempty"`
	// RosterChanges says that the client takes RosterChanges.
	RosterChanges bool `json:"rosterChanges,omitempty"`
	// Places says that the client takes a Restart to another node under the same epoch.
	Places bool `json:"places,omitempty"`
}

// Resume continues a session on a new socket.
type Resume struct {
	Resume string `json:"resume"`
	// Attempt grows at every attach. The join was attempt 1.
	Attempt uint64 `json:"attempt"`
	Epoch   uint64 `json:"epoch,omitempty"`
	Seq     uint64 `json:"seq,omitempty"`
	// RosterChanges says that the client takes RosterChanges.
	RosterChanges bool `json:"rosterChanges,omitempty"`
	// Places is as in Join.
	Places bool `json:"places,omitempty"`
}

// Offer is an SDP offer.
type Offer struct {
	ID  string `json:"id"`
	SDP string `json:"sdp"`
	// Fresh says that the offer comes from a new RTCPeerConnection.
	Fresh   bool         `json:"fresh"`
	Senders List[Sender] `json:"senders"`
	Slots   []Slot       `json:"slots,omitempty"`
	Unused  []UnusedSlot `json:"unused,omitempty"`
	// Apart says that each slot is to have a MediaStream of its own. Sound then never moves to a slot beside its owner's picture.
	Apart bool `json:"apart,omitempty"`
	// Rests says that the client stops sending the layers that Rests names, and begins again.
	Rests bool `json:"rests,omitempty"`
	// Part and what follows it are set for clients of LiveKit only. SlotsWait says that a slot sends nothing before its first Refresh,
	// ReportSenders that the node tells the client's SSRCs, and DataReliable and DataLossy are streams that the client opened at another node.
	Part          Part   `json:"-"`
	SlotsWait     bool   `json:"-"`
	ReportSenders bool   `json:"-"`
	DataReliable  uint16 `json:"-"`
	DataLossy     uint16 `json:"-"`
	// Data says that the data channels of the offer are the negotiated streams 100 (reliable) and 101 (lossy).
	Data bool `json:"data,omitempty"`
}

// Part says which connection an offer is of, for a client with one connection for each direction. The numbers are those of control.Part.
type Part int

// The parts.
const (
	PartBoth Part = iota
	PartUplink
	PartDownlink
	// PartDownlinkUnmet is a downlink whose client has not answered yet, so that its ICE and DTLS are not known.
	PartDownlinkUnmet
)

// View is what the page shows, with the most important first.
type View struct {
	Wants List[Want] `json:"wants"`
}

// Mute mutes or unmutes one source of the sender.
type Mute struct {
	Source Source `json:"source"`
	Muted  bool   `json:"muted"`
}

// The ways in which a restart ends.
const (
	HowRestart       = "restart"
	HowNewConnection = "new-connection"
	HowLive          = "live"
)

// Migrated reports the end of a restart.
type Migrated struct {
	Epoch   uint64   `json:"epoch"`
	Attempt uint64   `json:"attempt"`
	How     string   `json:"how"`
	GapMs   uint64   `json:"gapMs"`
	Lost    []Stream `json:"lost,omitempty"`
}

// Stalled reports that no media arrive.
type Stalled struct {
	Epoch    uint64 `json:"epoch"`
	SilentMs uint64 `json:"silentMs"`
}

// Refresh names slots whose picture is frozen.
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

// MediaPath says which way media take, and which of the ways that were tried answer.
type MediaPath struct {
	Way  string `json:"way"`
	UDP  *bool  `json:"udp,omitempty"`
	TCP  *bool  `json:"tcp,omitempty"`
	TURN *bool  `json:"turn,omitempty"`
}

// AskICEServers asks for new ICE servers.
type AskICEServers struct{}

// Say sends a line to the room's chat.
type Say struct {
	Text string `json:"text"`
	// ID marks a repetition of the same line.
	ID string `json:"id,omitempty"`
}

// Rename changes the name that others see.
type Rename struct {
	Name string `json:"name"`
}

// Moderate is what a moderator does to others.
type Moderate struct {
	Act    Act    `json:"act"`
	Peer   PeerID `json:"peer,omitempty"`
	Source Source `json:"source,omitempty"`
}

// Hand raises or lowers the sender's own hand.
type Hand struct {
	Raised bool `json:"raised"`
}

// React shows one of Emojis to everybody.
type React struct {
	Emoji string `json:"emoji"`
}

// Connect makes a connection that is online but in no room.
type Connect struct {
	Token string `json:"token"`
}

// Watch replaces the users whose presence is watched.
type Watch struct {
	Users List[string] `json:"users"`
}

// MessageKind is the purpose of a direct message.
type MessageKind string

// The kinds of direct messages. Their bodies are opaque to the server.
const (
	MessageText   MessageKind = "text"
	MessageRing   MessageKind = "ring"
	MessageAnswer MessageKind = "answer"
	MessageApp    MessageKind = "app"
	// MessageNotice is sent by the REST API only.
	MessageNotice MessageKind = "notice"
)

// SendMessage sends a direct message to users anywhere in the cluster. Messages without an answer are repeated, in
// order, on the next connection.
type SendMessage struct {
	To   List[string]    `json:"to"`
	Kind MessageKind     `json:"kind"`
	Body json.RawMessage `json:"body"`
	// Stream is one life of the client.
	Stream string `json:"stream"`
	// Seq grows in its stream.
	Seq uint64 `json:"seq"`
}

// Received acknowledges streams of direct messages.
type Received struct {
	UpTo List[StreamMark] `json:"upTo"`
}

// StreamMark is the highest Seq received of a stream.
type StreamMark struct {
	From   string `json:"from"`
	Stream string `json:"stream"`
	Seq    uint64 `json:"seq"`
}

// SetDoor is a moderator's change of the door. Without fields it asks for the Door.
type SetDoor struct {
	// Cap -1 lifts the cap.
	Cap    *int  `json:"cap,omitempty"`
	Closed *bool `json:"closed,omitempty"`
}

// LetIn puts one person first in line.
type LetIn struct {
	Identity string `json:"identity"`
}

// TurnAway removes one person from the line.
type TurnAway struct {
	Identity string `json:"identity"`
}

// Leave ends the session.
type Leave struct {
	// Back says that the person may come back: a full room keeps the place for 10 s.
	Back bool `json:"back,omitempty"`
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
