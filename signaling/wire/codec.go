package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"
)

// ErrUnknownType is Decode's error for a well-formed message of an unknown type.
var ErrUnknownType = errors.New("unknown message type")

// ErrMalformed is Decode's error for everything else.
var ErrMalformed = errors.New("malformed message")

// Decode reads a client's message.
func Decode(frame []byte) (Message, error) { return decode(frame, MaxMessageBytes, blankFromClient) }

// RequestOf returns the id that a client gave a message of any type, so that the error of that message can carry it. It is
// empty if the frame has none, or one that is no text of 1 to 64 bytes.
func RequestOf(frame []byte) RequestID {
	if !bytes.Contains(frame, []byte(`"request"`)) {
		return ""
	}
	var m struct {
		Request RequestID `json:"request"`
	}
	if json.Unmarshal(frame, &m) != nil || len(m.Request) > maxRequestBytes {
		return ""
	}
	return m.Request
}

// KindOf returns the type of a frame that Encode wrote, and an empty type for other frames.
func KindOf(frame []byte) Type {
	rest, ok := bytes.CutPrefix(frame, []byte(`{"type":"`))
	kind, _, ends := bytes.Cut(rest, []byte{'"'})
	if !ok || !ends {
		return ""
	}
	return Type(kind)
}

// DecodeServer reads a server's message. It is for clients in Go.
func DecodeServer(frame []byte) (Message, error) {
	return decode(frame, MaxServerBytes, blankFromServer)
}

// Encode writes a message as one JSON object that begins with its type.
func Encode(m Message) ([]byte, error) {
	body, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", m.kind(), err)
	}
	head, err := json.Marshal(m.kind())
	if err != nil {
		return nil, fmt.Errorf("encode type %s: %w", m.kind(), err)
	}
	frame := make([]byte, 0, len(body)+len(head)+len(`{"type":,`))
	frame = append(frame, `{"type":`...)
	frame = append(frame, head...)
	if len(body) > len(`{}`) {
		frame = append(frame, ',')
	}
	return append(frame, body[1:]...), nil
}

type validator interface{ validate() error }

// decode checks that required fields are present, because encoding/json takes a missing field and null for the zero
// value.
func decode(frame []byte, most int, blank func(Type) (Message, []string)) (Message, error) {
	if len(frame) > most {
		return nil, fmt.Errorf("%w: %d bytes, at most %d", ErrMalformed, len(frame), most)
	}
	if !utf8.Valid(frame) {
		return nil, fmt.Errorf("%w: it is not UTF-8", ErrMalformed)
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(frame, &members); err != nil || members == nil {
		return nil, fmt.Errorf("%w: it is not a JSON object", ErrMalformed)
	}
	var kind Type
	if err := json.Unmarshal(members["type"], &kind); err != nil || kind == "" {
		return nil, fmt.Errorf("%w: it has no type", ErrMalformed)
	}
	m, required := blank(kind)
	if m == nil {
		return nil, fmt.Errorf("%w %.40q", ErrUnknownType, string(kind))
	}
	for _, name := range required {
		if raw, ok := members[name]; !ok || string(raw) == "null" {
			return nil, fmt.Errorf("%w: %s has no %s", ErrMalformed, kind, name)
		}
	}
	if err := json.Unmarshal(frame, m); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrMalformed, kind, err)
	}
	if v, ok := m.(validator); ok {
		if err := v.validate(); err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrMalformed, kind, err)
		}
	}
	return m, nil
}

func blankFromClient(t Type) (Message, []string) {
	switch t {
	case "join":
		return new(Join), nil
	case "resume":
		return new(Resume), []string{"resume", "attempt"}
	case "offer":
		return new(Offer), []string{"id", "sdp", "fresh", "senders"}
	case "view":
		return new(View), []string{"wants"}
	case "mute":
		return new(Mute), []string{"source", "muted"}
	case "migrated":
		return new(Migrated), []string{"epoch", "attempt", "how", "gapMs"}
	case "stalled":
		return new(Stalled), []string{"epoch", "silentMs"}
	case "refresh":
		return new(Refresh), []string{"mids"}
	case "ping":
		return new(Ping), []string{"t"}
	case "ice-servers":
		return new(AskICEServers), nil
	case "chat":
		return new(Say), []string{"text"}
	case "rename":
		return new(Rename), []string{"name"}
	case "connect":
		return new(Connect), []string{"token"}
	case "watch":
		return new(Watch), []string{"users"}
	case "message":
		return new(SendMessage), []string{"to", "kind", "body", "stream", "seq"}
	case "received":
		return new(Received), []string{"upTo"}
	case "moderate":
		return new(Moderate), []string{"act"}
	case "hand":
		return new(Hand), []string{"raised"}
	case "reaction":
		return new(React), []string{"emoji"}
	case "door":
		return new(SetDoor), nil
	case "let-in":
		return new(LetIn), []string{"identity"}
	case "turn-away":
		return new(TurnAway), []string{"identity"}
	case "leave":
		return new(Leave), nil
	default:
		return nil, nil
	}
}

func blankFromServer(t Type) (Message, []string) {
	for _, m := range []Message{
		new(Joined), new(Resumed), new(Answer), new(OfferRejected), new(Slots), new(PeerJoined), new(PeerUpdated),
		new(PeerLeft), new(RosterChanges), new(Roster), new(Speakers), new(Chat), new(Restart), new(Settled), new(Limited), new(Audience), new(RoomUpdated), new(Reoffer), new(Rests), new(Error), new(Pong), new(Bye),
		new(Connected), new(Presence), new(PermissionsChanged), new(MutedBy), new(UnmuteAsked), new(Reactions),
		new(Waiting), new(Door), new(UserMessage), new(MessageState), new(ICEServers),
	} {
		if m.kind() == t {
			return m, nil
		}
	}
	return nil, nil
}

// MarshalJSON writes a nil list as [].
func (l List[T]) MarshalJSON() ([]byte, error) {
	if l == nil {
		return []byte("[]"), nil
	}
	return json.Marshal([]T(l))
}
