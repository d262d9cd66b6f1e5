package access

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-rtc/holdfast/ring"
)

// Grant says what a token allows, and to whom.
type Grant struct {
	Identity string
	// Name is for people to read.
	Name string
	// Metadata and Attributes are the application's. Everybody in the room is told of them.
	Metadata   string
	Attributes map[string]string
	Key        string
	Expires    time.Time

	Room     ring.RoomID
	RoomJoin bool
	// RoomAdmin is for Room only.
	RoomAdmin bool
	// RoomList is for the whole cluster.
	RoomList bool
	// RoomCreate counts only where the deployment demands it.
	RoomCreate bool

	// ClusterAdmin allows changes to the cluster.
	ClusterAdmin bool

	CanPublish bool
	// Sources is zero if all are allowed.
	Sources        Sources
	CanSubscribe   bool
	CanPublishData bool
	Hidden         bool
	CanRename      bool
	CanWatch       bool
	// CanMessage is for the whole cluster.
	CanMessage bool
	// ExpectedSize is 0 if it is unknown.
	ExpectedSize int
	// Check marks the token of a connection test. What is made with it ends with the token.
	Check bool

	// MaxParticipants is for Room; 0 is no cap.
	MaxParticipants int
}

const (
	maxExpectedSize    = 1000
	maxMaxParticipants = 1_000_000
)

// Everything returns a grant to join, publish, subscribe and chat.
func Everything(identity string, room ring.RoomID) Grant {
	return Grant{Identity: identity, Room: room, RoomJoin: true, CanPublish: true, CanSubscribe: true, CanPublishData: true}
}

// ForCheck grants a connection test in a room of its own. Nothing is granted that g does not allow, and it counts as g's identity.
func (g Grant) ForCheck(room ring.RoomID, places int) Grant {
	return Grant{
		Identity: g.Identity, Room: room, RoomJoin: g.RoomJoin, RoomCreate: g.RoomCreate, MaxParticipants: places, Check: true,
		CanPublish: g.CanPublish, Sources: g.Sources, CanSubscribe: g.CanSubscribe, Hidden: g.Hidden,
	}
}

// Operator returns a grant to see and change everything.
func Operator(identity string) Grant {
	return Grant{Identity: identity, RoomList: true, RoomAdmin: true, ClusterAdmin: true}
}

// Sources is a set of sources. Zero stands for all of them.
type Sources uint32

// The bits are those of control.Attach.
const (
	Microphone Sources = 1 << iota
	Camera
	Screen
	ScreenAudio
)

// Allows reports whether s has all of what.
func (s Sources) Allows(what Sources) bool { return s == 0 || s&what == what }

// Names returns the sources by LiveKit's names.
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

// ForRoom returns the room of g, or the asked one if g names none.
func (g Grant) ForRoom(asked string) (ring.RoomID, error) {
	if g.Identity == "" {
		return "", ErrNoIdentity
	}
	if !g.RoomJoin {
		return "", ErrNotJoin
	}
	own, err := CheckRoom(cmp.Or(string(g.Room), asked))
	if err != nil {
		return "", err
	}
	if other, err := CheckRoom(asked); asked != "" && (err != nil || other != own) {
		return "", ErrOtherRoom
	}
	return own, nil
}

// ForRoomAdmin returns nil if g runs the room.
func (g Grant) ForRoomAdmin(room ring.RoomID) error {
	if g.RoomAdmin && (g.Room == room || g.Room == "" && g.RoomList) {
		return nil
	}
	return ErrNotAdmin
}

// ForCluster returns nil if g opens the cluster's views.
func (g Grant) ForCluster() error {
	if g.RoomList && g.Room == "" {
		return nil
	}
	return ErrNotCluster
}

// ForClusterAdmin returns nil if g changes the cluster.
func (g Grant) ForClusterAdmin() error {
	if g.ClusterAdmin && g.Room == "" {
		return nil
	}
	return ErrNotClusterAdmin
}
