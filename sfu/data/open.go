package data

import (
	"encoding/binary"

	"github.com/pion/sctp"
)

// Messages of RFC 8832 section 5.
const (
	openMessage = 3
	ackMessage  = 2
	openBytes   = 12
)

// Labels of the two channels, as LiveKit's clients have them.
const (
	labelReliable = "_reliable"
	labelLossy    = "_lossy"
)

// unorderedBit is set in the types of channels whose messages may overtake each other.
const unorderedBit = 0x80

// opening is what a client says of a channel that it opens.
type opening struct {
	label     string
	unordered bool
	// limit is one of sctp.ReliabilityType…, by the number least.
	limit  byte
	number uint32
}

// readOpening reads a DATA_CHANNEL_OPEN.
func readOpening(message []byte) (opening, bool) {
	if len(message) < openBytes || message[0] != openMessage {
		return opening{}, false
	}
	label := int(binary.BigEndian.Uint16(message[8:]))
	protocol := int(binary.BigEndian.Uint16(message[10:]))
	limit := message[1] &^ unorderedBit
	if len(message) != openBytes+label+protocol || limit > sctp.ReliabilityTypeTimed {
		return opening{}, false
	}
	return opening{
		label: string(message[openBytes : openBytes+label]), unordered: message[1]&unorderedBit != 0,
		limit: limit, number: binary.BigEndian.Uint32(message[4:]),
	}, true
}
