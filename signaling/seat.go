package signaling

import (
	"sync/atomic"

	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/signaling/reply"
)

// seat is what the hub sees of a session. The session's loop sets the room before the session enters the hub, and never again.
type seat struct {
	socket *socket
	room   ring.RoomID
	moves  chan pin.Pin    // holds the latest pin; only the hub sends
	died   chan pin.BootID // holds the latest dead branch; only the hub sends

	load  atomic.Pointer[headroom.Room]
	shown atomic.Bool // a camera or screen is on
}

// Room implements hub.Session.
func (s *seat) Room() ring.RoomID { return s.room }

// Load implements hub.Session.
func (s *seat) Load() *headroom.Room { return s.load.Load() }

// Shown implements hub.Session.
func (s *seat) Shown() bool { return s.shown.Load() }

// Move replaces a pin that the session has not taken yet. The hub calls it under its lock, so the channel has room.
func (s *seat) Move(to pin.Pin) {
	select {
	case <-s.moves:
	default:
	}
	s.moves <- to
}

// BranchDied implements hub.Session, as Move does.
func (s *seat) BranchDied(boot pin.BootID) {
	select {
	case <-s.died:
	default:
	}
	s.died <- boot
}

// End implements hub.Session.
func (s *seat) End(why error) { s.socket.end(why) }

// Tell implements hub.Session.
func (s *seat) Tell(why error) { s.socket.send(reply.Of(why)) }
