package signaling

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-rtc/holdfast/orchestrator"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/signaling/access"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

var (
	errNotPublished = errors.New("the token does not allow publishing this source (canPublish, canPublishSources)")
	errNoChat       = errors.New("the token does not allow writing to the chat (canPublishData)")
	errNoRename     = errors.New("the token does not allow changing the name (canUpdateOwnMetadata)")
	errNoRoom       = errors.New("the room is not open, and the token does not allow opening it (roomCreate)")
)

func bitOf(source wire.Source) access.Sources {
	switch source {
	case wire.SourceMicrophone:
		return access.Microphone
	case wire.SourceCamera:
		return access.Camera
	case wire.SourceScreenAudio:
		return access.ScreenAudio
	default:
		return access.Screen
	}
}

// The media node checks what is really sent.
func mayPublish(who access.Session, source wire.Source) bool {
	return who.CanPublish && who.Sources.Allows(bitOf(source))
}

func permissionsOf(who access.Session) wire.Permissions {
	p := wire.Permissions{Publish: who.CanPublish, Subscribe: who.CanSubscribe, Chat: who.CanChat, Rename: who.CanRename, Watch: who.CanWatch, Moderate: who.CanModerate, Message: messageScope(who)}
	if who.Sources == 0 {
		return p
	}
	for _, source := range wire.Sources() {
		if who.Sources.Allows(bitOf(source)) {
			p.Sources = append(p.Sources, source)
		}
	}
	return p
}

func (s *session) rename(m *wire.Rename) error {
	if !s.who.CanRename {
		return errNoRename
	}
	name := access.SelfChosenName(m.Name)
	if name == "" {
		return fmt.Errorf("%w: nothing of the name can be shown", wire.ErrMalformed)
	}
	s.who.Name = name
	s.say(renameMessage(name))
	return nil
}

// Less than the budget of a join, which goes on without an answer.
const standsLimit = 2 * time.Second

// mayEnter demands a quota of rooms that is not spent and, if so configured, roomCreate where there is no pin.
func (s *session) mayEnter(ctx context.Context, spent error) error {
	create := s.server.config.DemandRoomCreate && !s.who.RoomCreate && !s.server.hub.has(s.who.Room)
	if spent == nil && !create {
		return nil
	}
	open, err := s.stands(ctx)
	switch {
	case spent != nil && err == nil && !open:
		return spent
	case !create:
		return nil
	case open, err != nil && s.resumes: // running calls need no store
		return nil
	case err != nil:
		return errors.Join(orchestrator.ErrStoreUnavailable, err)
	case s.resumes:
		return errResumeExpired
	default:
		return errNoRoom
	}
}

// stands reports whether the room has a pin.
func (s *session) stands(ctx context.Context) (stands bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, standsLimit)
	defer cancel()
	err = s.server.parts.Store.Pins(ctx, []ring.RoomID{s.who.Room}, func(pin.Holding) error {
		stands = true
		return nil
	})
	return stands, err
}

func (h *Hub) has(room ring.RoomID) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.rooms[room] != nil
}
