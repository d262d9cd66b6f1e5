// Package access reads and makes a session's access token, and the resume token that lets any signaling node take it over.
//
// A token which Verify or Open accepts was signed with a key of this deployment by the one allowed algorithm, and is in its time.
// No secret can be printed or logged through its types.
package access

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/signaling/fault"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// The reasons for which a token is refused.
var (
	ErrExpired         = fault.Coded(wire.CodeTokenExpired, "token has expired")
	ErrMissing         = fault.Coded(wire.CodeBadToken, "no token was given")
	ErrForged          = fault.Coded(wire.CodeBadToken, "token is not genuine")
	ErrUnknownKey      = fault.Coded(wire.CodeBadToken, "token's API key is not known")
	ErrUnfit           = fault.Detailed(wire.CodeBadToken, "the token cannot be used here", "Ask the application for another token.")
	ErrNoIdentity      = fault.Denied("the token names no identity (sub)")
	ErrNotJoin         = fault.Denied("token does not allow joining")
	ErrOtherRoom       = fault.Denied("token is for another room")
	ErrNotAdmin        = fault.Denied("the token does not run this room: that needs roomAdmin, and the name of the room in the token")
	ErrNotCluster      = fault.Denied("the token does not open the view of the whole cluster: that needs roomList, in a token that names no room")
	ErrNotClusterAdmin = fault.Denied("the token changes nothing in the cluster: that needs clusterAdmin, in a token that names no room")
	ErrCheck           = fault.Denied("the token is of a connection test: it joins that test's room, and allows nothing else")
	errSource          = errors.New("unknown source")
	errUnprintable     = errors.New("which is not printable")
	errNotUTF8         = errors.New("bytes that are not UTF-8")
	ErrBadRoom         = fault.Detailed(wire.CodeBadRoom, "room name is not 1 to 128 printable characters", "Choose another name.")
)

// MaxIdentityBytes bounds a token's subject.
const MaxIdentityBytes = 256

const (
	maxTokenBytes     = 8 << 10
	maxRoomCharacters = 128
	maxNameBytes      = 256
	maxMetadataBytes  = 2 << 10
	// maxAttributesBytes is for all keys and values together.
	maxAttributesBytes = 2 << 10
)

// CheckRoom returns the room of a name, which is the name in its normal form.
func CheckRoom(name string) (ring.RoomID, error) {
	room, err := normal(name)
	if err != nil {
		return "", fmt.Errorf("%w: it contains %w", ErrBadRoom, err)
	}
	if room == "" || utf8.RuneCountInString(room) > maxRoomCharacters {
		return "", ErrBadRoom
	}
	return ring.RoomID(room), nil
}

// Identity returns the identity that a request names, in its normal form. A text that is no identity stays as it is, and nobody has it.
func Identity(text string) string {
	identity, err := normal(text)
	if err != nil {
		return text
	}
	return identity
}

// normal returns the form in which rooms and identities are compared, logged and kept. Each stretch of spaces, also of those wider or narrower
// than ours (U+3000, U+00A0) and of characters that look like spaces, is one space; there is none at the ends; joiners stay where they join. Every other character must be printable,
// or the error names it: what cannot be seen must not tell two names apart.
func normal(text string) (string, error) {
	var out strings.Builder
	var joined joiners
	space := false
	for i, r := range text {
		switch {
		case joined.take(r):
		case unicode.Is(unicode.Zs, r) || blank(r):
			space = out.Len() > 0
			joined.end()
		case !unicode.IsPrint(r) || r == unicode.ReplacementChar:
			if _, size := utf8.DecodeRuneInString(text[i:]); size == 1 && r == unicode.ReplacementChar {
				return "", errNotUTF8
			}
			return "", fmt.Errorf("%U, %w", r, errUnprintable)
		default:
			if space {
				out.WriteByte(' ')
			}
			if joiner := joined.before(r); joiner != 0 {
				out.WriteRune(joiner)
			}
			out.WriteRune(r)
			space = false
		}
	}
	return out.String(), nil
}
