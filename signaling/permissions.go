package signaling

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/orchestrator"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/signaling/access"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// What a token does not allow.
var (
	errNotPublished = errors.New("the token does not allow publishing this source (canPublish, canPublishSources)")
	errNoChat       = errors.New("the token does not allow writing to the chat (canPublishData)")
	errNoRename     = errors.New("the token does not allow changing the name (canUpdateOwnMetadata)")
	errNoRoom       = errors.New("the room is not open, and the token does not allow opening it (roomCreate)")
)

// bitOf is what a token says of a source.
func bitOf(source wire.Source) access.Sources {
	switch source {
	case wire.SourceMicrophone:
		return access.Microphone
	case wire.SourceCamera:
		return access.Camera
	default:
		return access.Screen
	}
}

// mayPublish says whether somebody may publish a source. The media node, which sees what is really sent, judges by the same set.
func mayPublish(who access.Session, source wire.Source) bool {
	return who.CanPublish && who.Sources.Allows(bitOf(source))
}

// permissionsOf is what a client is told that it may do.
func permissionsOf(who access.Session) wire.Permissions {
	p := wire.Permissions{Publish: who.CanPublish, Subscribe: who.CanSubscribe, Chat: who.CanChat, Rename: who.CanRename}
	if who.Sources == 0 {
		return p
	}
	for _, source := range []wire.Source{wire.SourceMicrophone, wire.SourceCamera, wire.SourceScreen} {
		if who.Sources.Allows(bitOf(source)) {
			p.Sources = append(p.Sources, source)
		}
	}
	return p
}

// rename changes the name that the others see. It is as self-chosen as one that comes with a join.
func (s *session) rename(m *wire.Rename) error {
	if !s.who.CanRename {
		return errNoRename
	}
	name := access.SelfChosenName(m.Name)
	if name == "" {
		return fmt.Errorf("%w: nothing of the name can be shown", wire.ErrMalformed)
	}
	s.who.Name = name
	s.say(&control.EdgeMessage{Message: &control.EdgeMessage_Rename{Rename: &control.Rename{Name: name}}})
	return nil
}

// mayEnter refuses, where the deployment demands roomCreate, somebody who has it not and comes to a room that is not open. A room
// counts as open while it has a pin: from its opening until an hour after its end.
func (s *session) mayEnter(ctx context.Context) error {
	if !s.server.config.DemandRoomCreate || s.who.RoomCreate || s.server.hub.has(s.who.Room) {
		return nil
	}
	open := false
	err := s.server.parts.Store.Pins(ctx, []ring.RoomID{s.who.Room}, func(pin.Holding) error {
		open = true
		return nil
	})
	switch {
	case open, err != nil && s.resumes: // A running call does not wait for the store.
		return nil
	case err != nil:
		return errors.Join(orchestrator.ErrStoreUnavailable, err)
	case s.resumes:
		return errResumeExpired
	default:
		return errNoRoom
	}
}

// has says whether somebody in the room has a socket here.
func (h *Hub) has(room ring.RoomID) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.rooms[room] != nil
}
