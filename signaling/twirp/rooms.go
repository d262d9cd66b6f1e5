package twirp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/internal/events"
	"github.com/holdfast-rtc/holdfast/orchestrator"
	"github.com/holdfast-rtc/holdfast/people/roster"
	"github.com/holdfast-rtc/holdfast/people/waitlist"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/signaling/access"
	"github.com/holdfast-rtc/holdfast/signaling/livekit"
	"github.com/holdfast-rtc/holdfast/signaling/livekit/livekitpb"
	"github.com/holdfast-rtc/holdfast/signaling/moderation"
	"github.com/holdfast-rtc/holdfast/signaling/twirp/twirppb"
)

// LiveKit's defaults for rooms that nobody is in.
const (
	emptyTimeout     = 5 * time.Minute
	departureTimeout = 20 * time.Second
	maxTimeout       = 7 * 24 * time.Hour
)

const maxParticipants = 1_000_000

var errNoRoom = errorf(NotFound, "requested room does not exist")

// createRoom makes a room before anybody is in it, or changes one: only what the request names. The room's door and its description are in
// the store; no media node is chosen before somebody joins.
func (s *Service) createRoom(ctx context.Context, grant access.Grant, q *twirppb.CreateRoomRequest) (*livekitpb.Room, error) {
	room, err := s.roomCreator(grant, q.GetName())
	if err == nil {
		err = checkCreate(q)
	}
	if err != nil {
		return nil, err
	}
	now, err := s.deps.Doors.Order(ctx, room, waitlist.Order{Deed: waitlist.Look})
	if err != nil {
		return nil, err
	}
	d, err := descriptionOf(now)
	if err != nil {
		return nil, err
	}
	if d.Made == 0 {
		d.Made = time.Now().UnixMilli()
	}
	if q.GetEmptyTimeout() > 0 {
		d.Empty = time.Duration(q.GetEmptyTimeout()) * time.Second
	}
	if q.GetDepartureTimeout() > 0 {
		d.Departed = time.Duration(q.GetDepartureTimeout()) * time.Second
	}
	d.Metadata = cmp.Or(q.GetMetadata(), d.Metadata)
	order := waitlist.Order{Deed: waitlist.Make}
	if most := int(q.GetMaxParticipants()); most > 0 {
		order.Cap = &most
	}
	return s.describe(ctx, room, order, d)
}

func checkCreate(q *twirppb.CreateRoomRequest) error {
	switch {
	case q.GetEgress() != nil:
		return errorf(Unimplemented, "Holdfast records nothing: leave out egress")
	case len(q.GetAgents()) > 0:
		return errorf(Unimplemented, "Holdfast sends no agents into rooms: leave out agents")
	case q.GetMaxParticipants() > maxParticipants:
		return errorf(InvalidArgument, "max_participants is %d, and at most %d", q.GetMaxParticipants(), maxParticipants)
	case time.Duration(max(q.GetEmptyTimeout(), q.GetDepartureTimeout()))*time.Second > maxTimeout:
		return errorf(InvalidArgument, "empty_timeout and departure_timeout are at most %d seconds", int(maxTimeout.Seconds()))
	}
	return checkRoomMetadata(q.GetMetadata())
}

func checkRoomMetadata(metadata string) error {
	if len(metadata) > roster.MaxRoomMetadata {
		return errorf(InvalidArgument, "the metadata have %d bytes, and a room has at most %d", len(metadata), roster.MaxRoomMetadata)
	}
	return nil
}

// descriptionOf is that of a door, or the one of a room that nobody has described.
func descriptionOf(now waitlist.Door) (roster.Description, error) {
	d, err := roster.ParseDescription(now.Described)
	if now.Described == "" {
		d.Empty, d.Departed = emptyTimeout, departureTimeout
	}
	return d, err
}

// describe writes a description, tells the room's media node, and returns the room.
func (s *Service) describe(ctx context.Context, room ring.RoomID, order waitlist.Order, d roster.Description) (*livekitpb.Room, error) {
	text := d.Encode()
	order.Describe = &text
	now, err := s.deps.Doors.Order(ctx, room, order)
	if err != nil {
		return nil, err
	}
	answer := roomOf(room, d, max(now.Cap, 0))
	held, _ := s.held(ctx, &control.RoomsRequest{Room: string(room), Brief: true})
	for _, h := range held {
		count(answer, h)
	}
	return answer, nil
}

func roomOf(room ring.RoomID, d roster.Description, most int) *livekitpb.Room {
	answer := &livekitpb.Room{
		Sid: livekit.RoomSID(room), Name: string(room), Metadata: d.Metadata, CreationTimeMs: d.Made, CreationTime: d.Made / time.Second.Milliseconds(),
		EmptyTimeout: uint32(d.Empty.Seconds()), DepartureTimeout: uint32(d.Departed.Seconds()),
	}
	if most > 0 && most <= maxParticipants {
		answer.MaxParticipants = uint32(most)
	}
	return answer
}

// count adds what a media node has of a room.
func count(to *livekitpb.Room, h *control.HeldRoom) {
	to.NumParticipants += h.GetPeople()
	to.NumPublishers += h.GetPublishers()
	if opened := h.GetOpenedUnixMs(); to.GetCreationTimeMs() == 0 || opened > 0 && opened < to.GetCreationTimeMs() {
		to.CreationTimeMs, to.CreationTime = opened, opened/time.Second.Milliseconds()
	}
	to.Metadata = cmp.Or(to.GetMetadata(), h.GetRoomState().GetMetadata())
}

// held asks every media node for the rooms that it has, or for one room.
func (s *Service) held(ctx context.Context, request *control.RoomsRequest) ([]*control.HeldRoom, []ring.NodeID) {
	held, unreachable := moderation.AskNodes(ctx, s.deps.Moderation, "rooms", func(ctx context.Context, _ cluster.Node, client control.MediaClient) ([]*control.HeldRoom, error) {
		reply, err := client.Rooms(ctx, request)
		return reply.GetRooms(), err
	})
	// An older media node tells of all its rooms.
	return slices.DeleteFunc(held, func(h *control.HeldRoom) bool {
		return request.GetRoom() != "" && h.GetRoom() != request.GetRoom()
	}), unreachable
}

// listRooms lists the open rooms, and those that an application has made and nobody is in. A media node that does not answer has its rooms
// missing, if no application has made them.
func (s *Service) listRooms(ctx context.Context, grant access.Grant, q *twirppb.ListRoomsRequest) (*twirppb.ListRoomsResponse, error) {
	if err := grant.ForCluster(); err != nil {
		return nil, err
	}
	described, err := s.deps.Store.Described(ctx)
	if err != nil {
		return nil, errors.Join(orchestrator.ErrStoreUnavailable, err)
	}
	rooms := map[ring.RoomID]*livekitpb.Room{}
	for room, text := range described {
		settings, err := roster.ParseSettings(text)
		if err != nil {
			s.deps.Log.Debug("a room's settings are left out of a list", "room", room, "error", err)
			continue
		}
		rooms[room] = roomOf(room, settings.Description, settings.Cap)
	}
	held, _ := s.held(ctx, &control.RoomsRequest{Brief: true})
	for _, h := range held {
		room := ring.RoomID(h.GetRoom())
		if rooms[room] == nil {
			rooms[room] = roomOf(room, roster.Description{Empty: emptyTimeout, Departed: departureTimeout}, 0)
		}
		count(rooms[room], h)
	}
	return &twirppb.ListRoomsResponse{Rooms: chosen(rooms, q.GetNames())}, nil
}

// chosen are the rooms of these names, or all without any, in the order of their names.
func chosen(rooms map[ring.RoomID]*livekitpb.Room, names []string) (list []*livekitpb.Room) {
	wanted := map[ring.RoomID]bool{}
	for _, name := range names {
		if room, err := access.CheckRoom(name); err == nil {
			wanted[room] = true
		}
	}
	for room, one := range rooms {
		if len(names) == 0 || wanted[room] {
			list = append(list, one)
		}
	}
	slices.SortFunc(list, func(a, b *livekitpb.Room) int { return cmp.Compare(a.GetName(), b.GetName()) })
	return list
}

// deleteRoom ends the call for everybody, and forgets what was set of the room.
func (s *Service) deleteRoom(ctx context.Context, grant access.Grant, q *twirppb.DeleteRoomRequest) (*twirppb.DeleteRoomResponse, error) {
	room, err := s.roomCreator(grant, q.GetRoom())
	if err != nil {
		return nil, err
	}
	before, err := s.deps.Doors.Order(ctx, room, waitlist.Order{Deed: waitlist.Look})
	if err != nil {
		return nil, err
	}
	// The room's pin stands for a while after its end, so that it does not tell whether there is a room.
	held, _ := s.held(ctx, &control.RoomsRequest{Room: string(room), Brief: true})
	ended, open := s.deps.Moderation.EndCall(ctx, room)
	switch {
	case len(ended.Removed) == 0 && len(ended.Unreachable) > 0:
		return nil, errorf(Unavailable, "%d media nodes did not answer and may have people of the room: try again in a moment", len(ended.Unreachable))
	case open != nil && !errors.Is(open, orchestrator.ErrNoPin):
		return nil, open
	case before.Described == "" && len(held) == 0 && len(ended.Removed) == 0:
		return nil, errNoRoom
	}
	if _, err := s.deps.Doors.Order(ctx, room, waitlist.Order{Deed: waitlist.Forget}); err != nil {
		return nil, err
	}
	s.deps.Recorder.Record(events.Event{Kind: events.CallEnded, Room: room, By: grant.Identity, About: fmt.Sprint(time.Now().UnixNano())})
	return &twirppb.DeleteRoomResponse{}, nil
}

// updateRoomMetadata replaces the metadata of a room that is open or was made.
func (s *Service) updateRoomMetadata(ctx context.Context, grant access.Grant, q *twirppb.UpdateRoomMetadataRequest) (*livekitpb.Room, error) {
	room, err := s.roomAdmin(grant, q.GetRoom())
	if err == nil {
		err = checkRoomMetadata(q.GetMetadata())
	}
	if err != nil {
		return nil, err
	}
	now, err := s.deps.Doors.Order(ctx, room, waitlist.Order{Deed: waitlist.Look})
	if err != nil {
		return nil, err
	}
	if now.Pin == "" && now.Described == "" {
		return nil, errNoRoom
	}
	d, err := descriptionOf(now)
	if err != nil {
		return nil, err
	}
	d.Metadata = q.GetMetadata()
	return s.describe(ctx, room, waitlist.Order{Deed: waitlist.Change}, d)
}
