package access

import (
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-rtc/holdfast/ring"
)

// Grant is what a token allows, to whom. The zero value of CanPublish, CanSubscribe and CanPublishData forbids.
type Grant struct {
	Identity string    // the token's subject
	Name     string    // shown to people
	Metadata string    // opaque, for the media node
	Key      string    // the API key that signed the token
	Expires  time.Time // when the token ends

	Room       ring.RoomID
	RoomJoin   bool
	RoomAdmin  bool // of Room; see ForRoomAdmin
	RoomList   bool // of the cluster; see ForCluster
	RoomCreate bool // may open a room where that is demanded

	CanPublish     bool
	Sources        Sources // zero for everything
	CanSubscribe   bool
	CanPublishData bool // may write to the chat
	Hidden         bool // the others do not see it
	CanRename      bool // canUpdateOwnMetadata
	ExpectedSize   int  // of Room; 0 if unknown
}

const maxExpectedSize = 1000

// Everything is the usual grant: join the room, publish, subscribe and chat.
func Everything(identity string, room ring.RoomID) Grant {
	return Grant{Identity: identity, Room: room, RoomJoin: true, CanPublish: true, CanSubscribe: true, CanPublishData: true}
}

// Operator is the grant of the cluster's operator: all views, all rooms, and no call.
func Operator(identity string) Grant {
	return Grant{Identity: identity, RoomList: true, RoomAdmin: true}
}

// Sources is a set, sent to the media node as a number.
type Sources uint32

// The sources, with the bits of control.Attach.
const (
	Microphone Sources = 1 << iota
	Camera
	Screen
)

// Allows reports whether the set has all of what. The empty set allows everything, as LiveKit's empty list does.
func (s Sources) Allows(what Sources) bool { return s == 0 || s&what == what }

// Names lists the set in LiveKit's words; nothing for the empty set.
func (s Sources) Names() []string {
	var names []string
	for _, row := range []struct {
		bit  Sources
		name string
	}{{Microphone, "microphone"}, {Camera, "camera"}, {Screen, "screen_share"}} {
		if s&row.bit != 0 {
			names = append(names, row.name)
		}
	}
	return names
}

// ParseSources reads LiveKit's canPublishSources. The sound of a screen, which nothing publishes here, is left out.
func ParseSources(names []string) (Sources, error) {
	var allowed Sources
	for _, name := range names {
		switch strings.ToLower(name) {
		case "microphone":
			allowed |= Microphone
		case "camera":
			allowed |= Camera
		case "screen_share":
			allowed |= Screen
		case "screen_share_audio":
		default:
			return 0, fmt.Errorf("%w %.40q: known are microphone, camera, screen_share and screen_share_audio", ErrSource, name)
		}
	}
	return allowed, nil
}

// ForRoom returns the room that g lets its holder into: the one it names, or asked.
func (g Grant) ForRoom(asked string) (ring.RoomID, error) {
	if g.Identity == "" {
		return "", ErrNoIdentity
	}
	if !g.RoomJoin {
		return "", ErrNotJoin
	}
	if g.Room != "" && asked != "" && string(g.Room) != asked {
		return "", ErrOtherRoom
	}
	if g.Room != "" {
		asked = string(g.Room)
	}
	return CheckRoom(asked)
}

// ForRoomAdmin judges whether g runs a room: roomAdmin of that room, or the operator's grant.
func (g Grant) ForRoomAdmin(room ring.RoomID) error {
	if g.RoomAdmin && (g.Room == room || g.Room == "" && g.RoomList) {
		return nil
	}
	return ErrNotAdmin
}

// ForCluster judges whether g opens the views of the whole cluster.
func (g Grant) ForCluster() error {
	if g.RoomList && g.Room == "" {
		return nil
	}
	return ErrNotCluster
}
