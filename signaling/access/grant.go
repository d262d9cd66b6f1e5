package access

import (
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-rtc/holdfast/ring"
)

// Grant is what a token allows, to whom. False forbids.
type Grant struct {
	Identity string
	Name     string // for people
	Metadata string // for the media node
	Key      string // API key that signed the token
	Expires  time.Time

	Room       ring.RoomID
	RoomJoin   bool
	RoomAdmin  bool // of Room
	RoomList   bool // of the cluster
	RoomCreate bool // where that is demanded

	CanPublish     bool
	Sources        Sources // zero for everything
	CanSubscribe   bool
	CanPublishData bool
	Hidden         bool
	CanRename      bool
	CanWatch       bool // who is online
	CanMessage     bool // anybody in the cluster
	ExpectedSize   int  // 0: unknown

	MaxParticipants int // of Room; 0: no cap
}

const (
	maxExpectedSize    = 1000
	maxMaxParticipants = 1_000_000
)

// Everything lets join, publish, subscribe and chat.
func Everything(identity string, room ring.RoomID) Grant {
	return Grant{Identity: identity, Room: room, RoomJoin: true, CanPublish: true, CanSubscribe: true, CanPublishData: true}
}

// Operator sees all views and rooms, and joins no call.
func Operator(identity string) Grant {
	return Grant{Identity: identity, RoomList: true, RoomAdmin: true}
}

// Sources is a set; zero is everything.
type Sources uint32

// The bits of control.Attach.
const (
	Microphone Sources = 1 << iota
	Camera
	Screen
	ScreenAudio
)

// Allows reports whether the set has all of what.
func (s Sources) Allows(what Sources) bool { return s == 0 || s&what == what }

// Names lists the set in LiveKit's words.
func (s Sources) Names() []string {
	var names []string
	for _, row := range []struct {
		bit  Sources
		name string
	}{{Microphone, "microphone"}, {Camera, "camera"}, {Screen, "screen_share"}, {ScreenAudio, "screen_share_audio"}} {
		if s&row.bit != 0 {
			names = append(names, row.name)
		}
	}
	return names
}

// ParseSources reads LiveKit's canPublishSources.
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
			allowed |= ScreenAudio
		default:
			return 0, fmt.Errorf("%w %.40q: known are microphone, camera, screen_share and screen_share_audio", errSource, name)
		}
	}
	return allowed, nil
}

// ForRoom returns the room that g opens: the one it names, or asked.
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

// ForRoomAdmin judges whether g runs a room; an operator's does.
func (g Grant) ForRoomAdmin(room ring.RoomID) error {
	if g.RoomAdmin && (g.Room == room || g.Room == "" && g.RoomList) {
		return nil
	}
	return ErrNotAdmin
}

// ForCluster judges whether g opens the cluster's views.
func (g Grant) ForCluster() error {
	if g.RoomList && g.Room == "" {
		return nil
	}
	return ErrNotCluster
}
