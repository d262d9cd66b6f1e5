package sfu

import (
	"context"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/sfu/forward"
)

const (
	askUnmuteEvery = 10 * time.Second
	// More changes are told as one roster, or a large room's outboxes would overflow.
	manyChanges = 16
)

func (s *service) Moderate(ctx context.Context, request *control.ModerateRequest) (*control.ModerateReply, error) {
	_, source := sourceOf(request.GetSource())
	all := request.GetPeer() == "" && request.GetIdentity() == ""
	act := request.GetAct()
	switch {
	case request.GetRoom() == "" || request.GetPeer() != "" && request.GetIdentity() != "":
		return nil, status.Error(codes.InvalidArgument, "the request names a room, and a peer or an identity at most")
	case act <= control.Act_ACT_UNSPECIFIED || act > control.Act_ACT_GIVE_UP:
		return nil, status.Error(codes.InvalidArgument, "the act is not known")
	case all && act != control.Act_ACT_MUTE && act != control.Act_ACT_LOWER_HAND:
		return nil, status.Error(codes.InvalidArgument, "the act is for one person")
	case !source && (act == control.Act_ACT_MUTE || act == control.Act_ACT_ASK_UNMUTE):
		return nil, status.Error(codes.InvalidArgument, "the act is for a source")
	}
	reply := &control.ModerateReply{}
	ran, err := s.onLoop(ctx, request.GetRoom(), func(r *room) { r.moderate(request, reply) })
	switch {
	case ran:
		return reply, nil
	case err == nil && request.GetByPeer() != "": // over REST all nodes are asked
		return nil, control.NotOpen()
	default:
		return &control.ModerateReply{}, err
	}
}

func (r *room) moderate(m *control.ModerateRequest, reply *control.ModerateReply) {
	all := m.GetPeer() == "" && m.GetIdentity() == ""
	var changed []*peer
	for id, p := range r.peers {
		meant := string(id) == m.GetPeer() || m.GetIdentity() != "" && p.entry.GetIdentity() == m.GetIdentity() || all && string(id) != m.GetByPeer()
		if !meant || p.entry.GetHidden() {
			continue
		}
		if m.GetAct() == control.Act_ACT_ASK_UNMUTE && !r.askToUnmute(p, m) {
			reply.TooSoon = append(reply.TooSoon, string(id))
			continue
		}
		reply.Done = append(reply.Done, string(id))
		if m.GetAct() == control.Act_ACT_MUTE && r.muteBy(p, m) || r.judge(p, m.GetAct()) {
			changed = append(changed, p)
		}
	}
	r.log.Info("people moderated", "act", m.GetAct().String(), "by", m.GetByPeer(), "peers", len(reply.GetDone()), "changed", len(changed))
	if len(changed) > manyChanges {
		r.tellRoster(changed)
		return
	}
	for _, p := range changed {
		r.tell(p)
	}
}

// judge reports whether hand or grant changed.
func (r *room) judge(p *peer, act control.Act) bool {
	entry := rosterCopy(p.entry)
	switch act {
	case control.Act_ACT_LOWER_HAND:
		entry.HandRaisedUnixMs = 0
		p.judged = true
	case control.Act_ACT_GRANT:
		r.setGrant(entry, true)
	case control.Act_ACT_GIVE_UP:
		r.setGrant(entry, false)
	case control.Act_ACT_MUTE, control.Act_ACT_ASK_UNMUTE, control.Act_ACT_UNSPECIFIED:
		return false
	}
	return r.renew(p, entry)
}

// setGrant gives or takes back the grant of an entry that nobody has yet, later than any former change.
func (r *room) setGrant(entry *control.Peer, moderator bool) {
	entry.Moderator, entry.GrantJudgedUnixMs = moderator, max(time.Now().UnixMilli(), entry.GetGrantJudgedUnixMs()+1)
	id := forward.PeerID(entry.GetId())
	if moderator {
		delete(r.demoted, id)
	} else if len(r.demoted) < maxRemoved {
		r.demoted[id] = entry.GetGrantJudgedUnixMs()
	}
}

// heedGrant changes an entry that nobody has yet to the later of two words about the grant. Of two tokens, either is enough.
func heedGrant(entry, other *control.Peer) {
	switch mine, theirs := entry.GetGrantJudgedUnixMs(), other.GetGrantJudgedUnixMs(); {
	case theirs > mine:
		entry.Moderator, entry.GrantJudgedUnixMs = other.GetModerator(), theirs
	case theirs == 0 && mine == 0:
		entry.Moderator = entry.GetModerator() || other.GetModerator()
	}
}

// muteBy mutes for a moderator; only the peer itself unmutes.
func (r *room) muteBy(p *peer, m *control.ModerateRequest) bool {
	source, _ := sourceOf(m.GetSource())
	entry := rosterCopy(p.entry)
	if setMuted(entry, source, true); sameEntry(entry, p.entry) {
		return false // already muted
	}
	setSilenced(entry, source)
	p.judged = true
	r.renew(p, entry)
	r.tellSilenced(p, source, m.GetBy())
	return true
}

func (r *room) tellSilenced(p *peer, source forward.Source, by string) {
	r.media.SetMuted(p.id, source, true)
	r.send(p, &control.PeerEvent{Event: &control.PeerEvent_Silenced{Silenced: &control.Silenced{Source: sourceProto(source), By: by}}})
}

// askToUnmute is false for who was just asked.
func (r *room) askToUnmute(p *peer, m *control.ModerateRequest) bool {
	now := time.Now()
	if !p.askedAt.IsZero() && now.Sub(p.askedAt) < askUnmuteEvery {
		return false
	}
	p.askedAt = now
	r.send(p, &control.PeerEvent{Event: &control.PeerEvent_UnmuteAsked{UnmuteAsked: &control.UnmuteAsked{Source: m.GetSource(), By: m.GetBy()}}})
	return true
}

func (r *room) tellRoster(changed []*peer) {
	for _, p := range changed {
		p.told, p.toldAt = p.entry, time.Now()
	}
	r.seq++
	shown := &control.Roster{Peers: r.rosterFor(nil)}
	for _, p := range r.peers {
		roster := shown
		if p.entry.GetHidden() {
			roster = &control.Roster{Peers: r.rosterFor(p)}
		}
		r.send(p, &control.PeerEvent{Seq: r.seq, Event: &control.PeerEvent_Roster{Roster: roster}})
	}
}
