package twirp

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/internal/events"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/signaling/access"
	"github.com/holdfast-rtc/holdfast/signaling/livekit"
	"github.com/holdfast-rtc/holdfast/signaling/livekit/livekitpb"
	"github.com/holdfast-rtc/holdfast/signaling/twirp/twirppb"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

var errNoParticipant = errorf(NotFound, "participant does not exist")

// people are those in a room whom the others see, by arrival.
func (s *Service) people(ctx context.Context, room ring.RoomID) ([]*control.HeldPeer, []ring.NodeID) {
	held, unreachable := s.held(ctx, &control.RoomsRequest{Room: string(room), Entries: true})
	var people []*control.HeldPeer
	for _, h := range held {
		for _, p := range h.GetPeers() {
			if !p.GetEntry().GetHidden() {
				people = append(people, p)
			}
		}
	}
	slices.SortFunc(people, func(a, b *control.HeldPeer) int {
		return cmp.Or(cmp.Compare(a.GetJoinedUnixMs(), b.GetJoinedUnixMs()), cmp.Compare(a.GetId(), b.GetId()))
	})
	return people, unreachable
}

// participant returns the latest client of an identity.
func (s *Service) participant(ctx context.Context, room ring.RoomID, identity string) (*control.HeldPeer, error) {
	people, unreachable := s.people(ctx, room)
	for _, p := range slices.Backward(people) {
		if p.GetIdentity() == access.Identity(identity) {
			return p, nil
		}
	}
	if len(unreachable) > 0 {
		return nil, errorf(Unavailable, "%d media nodes did not answer and may have this participant: try again in a moment", len(unreachable))
	}
	return nil, errNoParticipant
}

// infoOf is what LiveKit's SDKs are told of a peer.
func infoOf(p *control.HeldPeer) *livekitpb.ParticipantInfo {
	entry := p.GetEntry()
	info := &livekitpb.ParticipantInfo{
		Sid: livekit.ParticipantSID(wire.PeerID(p.GetId())), Identity: p.GetIdentity(), Name: entry.GetName(), Metadata: entry.GetMetadata(), Attributes: entry.GetAttributes(),
		State: livekitpb.ParticipantInfo_DISCONNECTED, JoinedAtMs: p.GetJoinedUnixMs(), JoinedAt: p.GetJoinedUnixMs() / time.Second.Milliseconds(),
		IsPublisher: p.GetShows() != 0, Permission: permissionOf(p),
	}
	switch {
	case p.GetConnected():
		info.State = livekitpb.ParticipantInfo_ACTIVE
	case p.GetAttached():
		info.State = livekitpb.ParticipantInfo_JOINED
	}
	for _, r := range rows() {
		if (p.GetShows()|p.GetPublished()|entry.GetSilenced())&r.bit() != 0 {
			info.Tracks = append(info.Tracks, trackOf(p, r))
		}
	}
	return info
}

func trackOf(p *control.HeldPeer, r row) *livekitpb.TrackInfo {
	return &livekitpb.TrackInfo{Sid: r.sid(p.GetId()), Type: r.kind, Source: r.name, Muted: p.GetShows()&r.bit() == 0}
}

func permissionOf(p *control.HeldPeer) *livekitpb.ParticipantPermission {
	may := p.GetPermission()
	permission := &livekitpb.ParticipantPermission{
		CanSubscribe: p.GetCanSubscribe(), CanPublish: may.GetCanPublish(), CanPublishData: may.GetCanChat(), CanUpdateMetadata: may.GetCanRename(),
	}
	for _, r := range rows() {
		if may.GetSources()&r.bit() != 0 {
			permission.CanPublishSources = append(permission.CanPublishSources, r.name)
		}
	}
	return permission
}

func (s *Service) listParticipants(ctx context.Context, grant access.Grant, q *twirppb.ListParticipantsRequest) (*twirppb.ListParticipantsResponse, error) {
	room, err := s.roomAdmin(grant, q.GetRoom())
	if err != nil {
		return nil, err
	}
	people, unreachable := s.people(ctx, room)
	if len(people) == 0 && len(unreachable) > 0 {
		return nil, errorf(Unavailable, "%d media nodes did not answer and may have the room: try again in a moment", len(unreachable))
	}
	answer := &twirppb.ListParticipantsResponse{}
	for _, p := range people {
		answer.Participants = append(answer.Participants, infoOf(p))
	}
	return answer, nil
}

func (s *Service) getParticipant(ctx context.Context, grant access.Grant, q *twirppb.RoomParticipantIdentity) (*livekitpb.ParticipantInfo, error) {
	room, err := s.roomAdmin(grant, q.GetRoom())
	if err != nil {
		return nil, err
	}
	p, err := s.participant(ctx, room, q.GetIdentity())
	if err != nil {
		return nil, err
	}
	return infoOf(p), nil
}

func (s *Service) removeParticipant(ctx context.Context, grant access.Grant, q *twirppb.RoomParticipantIdentity) (*twirppb.RemoveParticipantResponse, error) {
	room, err := s.roomAdmin(grant, q.GetRoom())
	if err != nil {
		return nil, err
	}
	identity := access.Identity(q.GetIdentity())
	if identity == "" || len(identity) > access.MaxIdentityBytes {
		return nil, errNoParticipant
	}
	removal := s.deps.Moderation.Remove(ctx, &control.RemoveRequest{Room: string(room), Identity: identity})
	switch {
	case len(removal.Removed) > 0:
		s.deps.Recorder.Record(events.Event{Kind: events.PersonRemoved, Room: room, By: grant.Identity, About: livekit.ParticipantSID(wire.PeerID(removal.Removed[0].Peer))})
		return &twirppb.RemoveParticipantResponse{}, nil
	case len(removal.Unreachable) > 0:
		return nil, errorf(Unavailable, "%d media nodes did not answer and may have this participant: try again in a moment", len(removal.Unreachable))
	}
	return nil, errNoParticipant
}

// mutePublishedTrack mutes as a moderator does: only the person unmutes. To unmute asks the person, which LiveKit does if it is so configured.
func (s *Service) mutePublishedTrack(ctx context.Context, grant access.Grant, q *twirppb.MuteRoomTrackRequest) (*twirppb.MuteRoomTrackResponse, error) {
	room, err := s.roomAdmin(grant, q.GetRoom())
	if err != nil {
		return nil, err
	}
	if !q.GetMuted() {
		return nil, errorf(FailedPrecondition, "nobody else unmutes a person: POST /api/v1/peers/ask-unmute asks for it")
	}
	p, err := s.participant(ctx, room, q.GetIdentity())
	if err != nil {
		return nil, err
	}
	for _, r := range rows() {
		if r.sid(p.GetId()) != q.GetTrackSid() {
			continue
		}
		request := &control.ModerateRequest{Room: string(room), Act: control.Act_ACT_MUTE, Peer: p.GetId(), Source: r.source, By: access.ShownName(grant.Name)}
		if err := s.moderate(ctx, request); err != nil {
			return nil, err
		}
		p.Shows &^= r.bit()
		return &twirppb.MuteRoomTrackResponse{Track: trackOf(p, r)}, nil
	}
	return nil, errorf(NotFound, "track is not found")
}

func (s *Service) moderate(ctx context.Context, request *control.ModerateRequest) error {
	done, unreachable := s.deps.Moderation.ModerateEverywhere(ctx, request)
	switch {
	case len(done) > 0:
		return nil
	case len(unreachable) > 0:
		return errorf(Unavailable, "%d media nodes did not answer and may have this participant: try again in a moment", len(unreachable))
	default:
		return errNoParticipant
	}
}

// updateParticipant changes all clients of an identity, and returns the latest.
func (s *Service) updateParticipant(ctx context.Context, grant access.Grant, q *twirppb.UpdateParticipantRequest) (*livekitpb.ParticipantInfo, error) {
	room, err := s.roomAdmin(grant, q.GetRoom())
	if err != nil {
		return nil, err
	}
	p, err := s.participant(ctx, room, q.GetIdentity())
	if err != nil {
		return nil, err
	}
	update, err := updateOf(q, p)
	if err != nil {
		return nil, err
	}
	request := &control.ModerateRequest{Room: string(room), Act: control.Act_ACT_UPDATE, Identity: p.GetIdentity(), Update: update}
	if err := s.moderate(ctx, request); err != nil {
		return nil, err
	}
	if p, err = s.participant(ctx, room, q.GetIdentity()); err != nil {
		return nil, err
	}
	return infoOf(p), nil
}

// updateOf checks what a request changes of a peer. Empty fields change nothing.
func updateOf(q *twirppb.UpdateParticipantRequest, p *control.HeldPeer) (*control.Update, error) {
	update := &control.Update{Attributes: q.GetAttributes()}
	if q.GetMetadata() != "" {
		update.Metadata = &q.Metadata
	}
	if q.GetName() != "" {
		name := access.ShownName(q.GetName())
		if name == "" {
			return nil, errorf(InvalidArgument, "nothing of the name can be shown")
		}
		update.Name = &name
	}
	after := map[string]string{}
	maps.Copy(after, p.GetEntry().GetAttributes())
	maps.Copy(after, q.GetAttributes())
	if err := access.CheckDescription(q.GetName(), q.GetMetadata(), after); err != nil {
		return nil, errorf(InvalidArgument, "%v", err)
	}
	may := q.GetPermission()
	if may == nil {
		return update, nil
	}
	if may.GetCanSubscribe() != p.GetCanSubscribe() || may.GetHidden() != p.GetEntry().GetHidden() {
		return nil, errorf(Unimplemented, "can_subscribe and hidden cannot change in mid-call: they are the token's")
	}
	update.Permission = &control.Permission{CanPublish: may.GetCanPublish(), CanChat: may.GetCanPublishData(), CanRename: may.GetCanUpdateMetadata()}
	for _, r := range rows() {
		if slices.Contains(may.GetCanPublishSources(), r.name) {
			update.Permission.Sources |= r.bit()
		}
	}
	return update, nil
}
