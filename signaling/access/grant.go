package access

import (
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-rtc/holdfast/ring"
)

// Grant is what a token allows, to whom. The zero value of CanPublish,
// CanSubscribe and CanPublishData forbids; see Everything.
type Grant struct {
	Identity string    // the token's subject: who it is, stable for the application
	Name     string    // shown to people
	Metadata string    // opaque, handed to the media node with the person
	Key      string    // the API key that signed the token; Mint sets it
	Expires  time.Time // when the token ends; Mint sets it

	Room       ring.RoomID
	RoomJoin   bool
	RoomAdmin  bool // runs Room; see ForRoomAdmin
	RoomList   bool // sees the cluster; see ForCluster
	RoomCreate bool // may open a room where the deployment demands it

	CanPublish     bool
	Sources        Sources // what may be published; the zero value is everything
	CanSubscribe   bool
	CanPublishData bool // may write to the chat
	Hidden         bool // the others do not see it
	CanRename      bool // canUpdateOwnMetadata: may change its name in the call
	ExpectedSize   int  // how many people the room that the token names is expected to hold; 0 where it does not say
}

// maxExpectedSize bounds what a token may say of its room; more counts as so many.
const maxExpectedSize = 1000

// Everything is the usual grant: join the room, publish, subscribe and chat.
func Everything(identity string, room ring.RoomID) Grant {
	return Grant{Identity: identity, Room: room, RoomJoin: true, CanPublish: true, CanSubscribe: true, CanPublishData: true}
}

// Operator is the grant of who runs the cluster: all views, all rooms, and no call.
func Operator(identity string) Grant {
	return Grant{Identity: identity, RoomList: true, RoomAdmin: true}
}

// Sources is a set of things that a person publishes. It travels to the media node as a number.
type Sources uint32

// The sources. Their bits are those of control.Attach.
const (
	Microphone Sources = 1 << iota
	Camera
	Screen
)

// Allows reports whether the set has all of what. The empty set allows everything, as LiveKit's empty list does.
func (s Sources) Allows(what Sources) bool { return s == 0 || s&what == what }

// Names lists the set in the words of LiveKit's tokens; nothing for the empty set.
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

// ParseSources reads names as those of canPublishSources in LiveKit's tokens. Of a list that is not empty the set is empty
// if it names only the sound of a screen, which nothing publishes here.
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

// ForRoom judges whether g lets its holder into a room: the one it names, or
// the one asked for when it names none. asked may be empty.
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

// ForRoomAdmin judges whether g runs a room: roomAdmin of that room, or the operator's grant, which
// has roomAdmin and roomList and names no room.
func (g Grant) ForRoomAdmin(room ring.RoomID) error {
	if g.RoomAdmin && (g.Room == room || g.Room == "" && g.RoomList) {
		return nil
	}
	return ErrNotAdmin
}

// ForCluster judges whether g opens the view of the whole cluster: its nodes, and all rooms with everybody in them.
func (g Grant) ForCluster() error {
	if g.RoomList && g.Room == "" {
		return nil
	}
	return ErrNotCluster
}
