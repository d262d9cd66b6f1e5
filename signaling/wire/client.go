package wire

// Join is the first message of a new session.
type Join struct {
	Token string `json:"token"`
	Room  string `json:"room,omitempty"` // must match the token's room
	Name  string `json:"name,omitempty"` // shown when the token names nobody
}

// Resume is the first message on a new socket of an old session.
type Resume struct {
	Resume  string `json:"resume"`
	Attempt uint64 `json:"attempt"` // grows at every attach; the join was 1
	Epoch   uint64 `json:"epoch,omitempty"`
	Seq     uint64 `json:"seq,omitempty"`
}

// Offer is an SDP offer.
type Offer struct {
	ID      string       `json:"id"`
	SDP     string       `json:"sdp"`
	Fresh   bool         `json:"fresh"` // from a new RTCPeerConnection
	Senders List[Sender] `json:"senders"`
	Slots   []Slot       `json:"slots,omitempty"` // the client's present table
}

// View is what the page shows, most important first.
type View struct {
	Wants List[Want] `json:"wants"`
}

// Mute says that the person muted or unmuted a source.
type Mute struct {
	Source Source `json:"source"`
	Muted  bool   `json:"muted"`
}

// How a restart ended.
const (
	HowRestart       = "restart" // the same RTCPeerConnection
	HowNewConnection = "new-connection"
)

// Migrated says that media flows again after a restart.
type Migrated struct {
	Epoch   uint64   `json:"epoch"`
	Attempt uint64   `json:"attempt"`
	How     string   `json:"how"`
	GapMs   uint64   `json:"gapMs"`          // the longest gap of a stream that runs again
	Lost    []Stream `json:"lost,omitempty"` // those that do not
}

// Stalled says that nothing arrives on the media connection, though media should.
type Stalled struct {
	Epoch    uint64 `json:"epoch"`
	SilentMs uint64 `json:"silentMs"`
}

// Refresh says that slots show nothing, though they should.
type Refresh struct {
	Mids List[string] `json:"mids"`
}

// Ping asks for a Pong with the same number.
type Ping struct {
	T float64 `json:"t"`
}

// Say is a line for the room's chat.
type Say struct {
	Text string `json:"text"`
	ID   string `json:"id,omitempty"` // tells a repeated line
}

// Rename changes the name that the person is shown by.
type Rename struct {
	Name string `json:"name"`
}

// Leave ends the session.
type Leave struct{}

// Type implements Message.
func (*Join) Type() Type { return "join" }

// Type implements Message.
func (*Resume) Type() Type { return "resume" }

// Type implements Message.
func (*Offer) Type() Type { return "offer" }

// Type implements Message.
func (*View) Type() Type { return "view" }

// Type implements Message.
func (*Mute) Type() Type { return "mute" }

// Type implements Message.
func (*Migrated) Type() Type { return "migrated" }

// Type implements Message.
func (*Stalled) Type() Type { return "stalled" }

// Type implements Message.
func (*Refresh) Type() Type { return "refresh" }

// Type implements Message.
func (*Ping) Type() Type { return "ping" }

// Type implements Message.
func (*Say) Type() Type { return "chat" }

// Type implements Message.
func (*Rename) Type() Type { return "rename" }

// Type implements Message.
func (*Leave) Type() Type { return "leave" }
