package data

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// MaxMessageBytes is the size of the longest message of a client: 15 KiB of data, as in LiveKit's clients, and what is around them.
const MaxMessageBytes = 16 << 10

// ErrBad is wrapped by every error about a client's message.
var ErrBad = errors.New("the message is not a DataPacket")

// sidPrefix makes LiveKit's id of a participant of a peer's id.
const sidPrefix = "PA_"

// Numbers of fields (LiveKit's livekit_models.proto).
const (
	packetUser         = 2
	packetSpeaker      = 3 // of servers only
	packetIdentity     = 4
	packetDestinations = 5
	packetMetrics      = 8 // for servers only
	packetSequence     = 16
	packetSID          = 17

	userSID          = 1
	userDestSIDs     = 3
	userIdentity     = 5
	userDestinations = 6
)

// Wire types of protobuf.
const (
	varint  = 0
	fixed64 = 1
	sized   = 2
	fixed32 = 5
)

// Sender is who a message is from.
type Sender struct {
	Peer     string
	Identity string
}

func (s Sender) sid() string { return sidPrefix + s.Peer }

// Destinations are people of a room, by identity and by LiveKit's id. Nobody at all stands for everybody.
type Destinations struct {
	Identities, SIDs []string
}

// Stamp reads a client's message and returns it as its receivers get it: with its sender, whatever it said itself, and without a sequence
// number. Those number the messages of one connection, and a sender keeps its id when it makes another.
func Stamp(message []byte, from Sender) ([]byte, Destinations, error) {
	var to Destinations
	out := make([]byte, 0, len(message)+2*(len(from.Identity)+len(from.sid()))+16)
	err := walk(message, func(f field) error {
		switch f.number {
		case packetIdentity, packetSequence, packetSID:
			return nil
		case packetSpeaker, packetMetrics:
			return fmt.Errorf("%w: it is of a kind that clients do not send each other", ErrBad)
		case packetDestinations:
			to.Identities = append(to.Identities, string(f.value))
		case packetUser:
			user, err := stampUser(f.value, from, &to)
			if err != nil {
				return err
			}
			out = appendBytes(out, packetUser, user)
			return nil
		}
		out = append(out, f.whole...)
		return nil
	})
	if err != nil {
		return nil, Destinations{}, err
	}
	out = appendBytes(out, packetIdentity, []byte(from.Identity))
	return appendBytes(out, packetSID, []byte(from.sid())), to, nil
}

// stampUser is Stamp for the part of the message that older clients read.
func stampUser(user []byte, from Sender, to *Destinations) ([]byte, error) {
	out := make([]byte, 0, len(user)+len(from.Identity)+len(from.sid())+8)
	err := walk(user, func(f field) error {
		switch f.number {
		case userSID, userIdentity:
			return nil
		case userDestSIDs:
			to.SIDs = append(to.SIDs, string(f.value))
		case userDestinations:
			to.Identities = append(to.Identities, string(f.value))
		}
		out = append(out, f.whole...)
		return nil
	})
	if err != nil {
		return nil, err
	}
	out = appendBytes(out, userIdentity, []byte(from.Identity))
	return appendBytes(out, userSID, []byte(from.sid())), nil
}

// field is one of a protobuf message. value is empty unless the field has a length; whole has the number too.
type field struct {
	number uint64
	value  []byte
	whole  []byte
}

// walk calls take with the fields of a protobuf message, in order.
func walk(message []byte, take func(field) error) error {
	for len(message) > 0 {
		f, size := readField(message)
		if size == 0 {
			return fmt.Errorf("%w: it is not protobuf", ErrBad)
		}
		if err := take(f); err != nil {
			return err
		}
		message = message[size:]
	}
	return nil
}

// readField returns the first field and its size, 0 if it cannot be read.
func readField(message []byte) (field, int) {
	tag, size := binary.Uvarint(message)
	if size <= 0 || tag>>3 == 0 {
		return field{}, 0
	}
	f := field{number: tag >> 3}
	switch tag & 7 {
	case varint:
		_, n := binary.Uvarint(message[size:])
		if n <= 0 {
			return field{}, 0
		}
		size += n
	case fixed64:
		size += 8
	case fixed32:
		size += 4
	case sized:
		length, n := binary.Uvarint(message[size:])
		if n <= 0 || length > uint64(len(message)-size-n) {
			return field{}, 0
		}
		size += n
		f.value = message[size : size+int(length)]
		size += int(length)
	default:
		return field{}, 0
	}
	if size > len(message) {
		return field{}, 0
	}
	f.whole = message[:size]
	return f, size
}

func appendBytes(to []byte, number uint64, value []byte) []byte {
	to = binary.AppendUvarint(to, number<<3|sized)
	to = binary.AppendUvarint(to, uint64(len(value)))
	return append(to, value...)
}
