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
)

// Reasons of a refusal.
var (
	ErrExpired         = errors.New("token has expired")
	ErrForged          = errors.New("token is not genuine")
	ErrUnknownKey      = errors.New("token's API key is not known")
	ErrUnfit           = errors.New("the token cannot be used here")
	ErrNoIdentity      = errors.New("the token names no identity (sub)")
	ErrNotJoin         = errors.New("token does not allow joining")
	ErrOtherRoom       = errors.New("token is for another room")
	ErrNotAdmin        = errors.New("the token does not run this room: that needs roomAdmin, and the name of the room in the token")
	ErrNotCluster      = errors.New("the token does not open the view of the whole cluster: that needs roomList, in a token that names no room")
	ErrNotClusterAdmin = errors.New("the token changes nothing in the cluster: that needs clusterAdmin, in a token that names no room")
	ErrCheck           = errors.New("the token is of a connection test: it joins that test's room, and allows nothing else")
	errSource          = errors.New("unknown source")
	ErrBadRoom         = errors.New("room name is not 1 to 128 printable characters")
)

// MaxIdentityBytes bounds a token's subject.
const MaxIdentityBytes = 256

const (
	maxTokenBytes     = 8 << 10
	maxRoomCharacters = 128
	maxNameBytes      = 256
	maxMetadataBytes  = 2 << 10
)

// CheckRoom accepts all printable characters.
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
