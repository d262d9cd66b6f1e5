// Package access reads and makes a session's access token, and the resume token that lets any signaling node take it over.
//
// A token which Verify or Open accepts was signed with a key of this deployment by the one allowed algorithm, and is in its time.
// No secret can be printed or logged through its types.
package access

import (
	"errors"
	"fmt"
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
	ErrBadRoom         = fault.Detailed(wire.CodeBadRoom, "room name is not 1 to 128 printable characters", "Choose another name.")
)

// MaxIdentityBytes bounds a token's subject.
const MaxIdentityBytes = 256

const (
	maxTokenBytes     = 8 << 10
	maxRoomCharacters = 128
	maxNameBytes      = 256
	maxMetadataBytes  = 2 << 10
)

// CheckRoom accepts a name of printable characters.
func CheckRoom(name string) (ring.RoomID, error) {
	if !utf8.ValidString(name) || name == "" || utf8.RuneCountInString(name) > maxRoomCharacters {
		return "", ErrBadRoom
	}
	for _, r := range name {
		if !unicode.IsPrint(r) {
			return "", fmt.Errorf("%w: it contains %U", ErrBadRoom, r)
		}
	}
	return ring.RoomID(name), nil
}
