package sfu

import (
	"time"
	"unicode/utf8"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/sfu/forward"
	"github.com/holdfast-rtc/holdfast/sfu/sources"
)

// chat sends a line to everybody attached, also to the speaker as the acknowledgement. It is kept for those who are expected or whose
// signaling node is dead or frozen: they attach within the grace time.
func (r *room) chat(p *peer, say *control.Say) {
	line := r.lines.add(p.entry, say, time.Now())
	if line == nil {
		return
	}
	r.sendAll(chatEvent(line))
	for _, other := range r.peers {
		if other.outbox != nil {
			other.chatSent = line.GetSeq()
		}
	}
}

// tellMissed repeats the lines since the peer came or was expected.
func (r *room) tellMissed(p *peer) {
	for _, line := range r.lines.missed(p.chatFrom, p.chatSent, r.node.cfg.Grace) {
		r.send(p, chatEvent(line))
		p.chatSent = max(p.chatSent, line.GetSeq())
	}
}

// hand raises or lowers a peer's hand. A hand that is raised already keeps its place in the line.
func (r *room) hand(p *peer, raised bool) {
	if p.entry.GetHidden() {
		return
	}
	p.judged = true
	entry := rosterCopy(p.entry)
	switch {
	case !raised:
		entry.HandRaisedUnixMs = 0
	case entry.GetHandRaisedUnixMs() == 0:
		// Last in line, even if the former node's clock was ahead.
		r.lastHand = max(time.Now().UnixMilli(), r.lastHand+1)
		entry.HandRaisedUnixMs = r.lastHand
	}
	if r.renew(p, entry) {
		r.tellSoon(p)
	}
}

// keep gives the entry of an arriving peer the hand, mutes and grant that others remember of the same identity.
func keep(entry, known *control.Peer) {
	if entry.GetIdentity() != known.GetIdentity() {
		return
	}
	if entry.GetHandRaisedUnixMs() == 0 {
		entry.HandRaisedUnixMs = known.GetHandRaisedUnixMs()
	}
	heedGrant(entry, known)
	entry.Silenced |= known.GetSilenced()
	for _, source := range forward.Sources() {
		if entry.GetSilenced()&sources.Bit(source) != 0 {
			setSilenced(entry, source)
		}
	}
}

// heed takes over a later word about a peer's grant, of its own signaling node or of others.
func (r *room) heed(p *peer, known *control.Peer) {
	if known.GetIdentity() != p.entry.GetIdentity() {
		return
	}
	entry := rosterCopy(p.entry)
	heedGrant(entry, known)
	if r.renew(p, entry) {
		r.tell(p)
	}
}

// recall restores a peer from others' memory, if its node and signaling node are new.
func (r *room) recall(p *peer, known *control.Peer) {
	r.heed(p, known)
	// Each arriving peer remembers everybody, so nearly always there is nothing new.
	has := p.entry
	if p.judged || has.GetHidden() || (known.GetHandRaisedUnixMs() == 0 || has.GetHandRaisedUnixMs() != 0) &&
		known.GetSilenced()&^(has.GetSilenced()|p.unmuted) == 0 {
		return
	}
	entry, before := rosterCopy(p.entry), p.entry.GetSilenced()
	known = rosterCopy(known)
	known.Silenced &^= p.unmuted
	keep(entry, known)
	r.lastHand = max(r.lastHand, entry.GetHandRaisedUnixMs())
	if !r.renew(p, entry) {
		return
	}
	for _, source := range forward.Sources() {
		if (entry.GetSilenced()&^before)&sources.Bit(source) != 0 {
			r.tellSilenced(p, source, "")
		}
	}
	r.tell(p)
}

// react sends an emoji, with others of the moment, to everybody attached.
func (r *room) react(p *peer, emoji string) {
	if r.reactions.add(p.entry, emoji) {
		r.after(r.reactions.due(time.Now()), r.tellReactions)
	}
}

func (r *room) tellReactions() {
	r.sendAll(r.reactions.take(time.Now()))
}

const muteEvery = 200 * time.Millisecond

func (r *room) mute(p *peer, message *control.Mute) {
	source, ok := sources.Of(message.GetSource())
	if !ok {
		return
	}
	r.media.SetMuted(p.id, source, message.GetMuted())
	entry := rosterCopy(p.entry)
	setMuted(entry, source, message.GetMuted())
	if !message.GetMuted() {
		entry.Silenced &^= sources.Bit(source)
		p.unmuted |= sources.Bit(source)
	}
	if r.renew(p, entry) {
		r.tellSoon(p)
	}
}

func (r *room) renew(p *peer, entry *control.Peer) bool {
	if sameEntry(entry, p.entry) {
		return false
	}
	if entry.GetSilenced() != p.entry.GetSilenced() && p.connection != nil {
		p.connection.Silence(entry.GetSilenced())
	}
	p.entry = entry
	return true
}

func (r *room) rename(p *peer, name string) {
	entry := rosterCopy(p.entry)
	entry.Name = name
	if name != "" && utf8.ValidString(name) && entryFits(entry) && r.renew(p, entry) {
		r.tellSoon(p)
	}
}

// tellSoon tells the others of an entry at once, or what it is at the end of muteEvery.
func (r *room) tellSoon(p *peer) {
	if p.telling {
		return
	}
	wait := muteEvery - time.Since(p.toldAt)
	if wait <= 0 {
		r.tell(p)
		return
	}
	p.telling = true
	r.after(wait, func() {
		p.telling = false
		if !p.gone.Load() && (p.told == nil || !sameEntry(p.told, p.entry)) {
			r.tell(p)
		}
	})
}

func (r *room) tell(p *peer) {
	p.told, p.toldAt = p.entry, time.Now()
	r.announce(p, &control.RosterChange{Change: &control.RosterChange_Updated{Updated: p.entry}})
}

const (
	askUnmuteEvery = 10 * time.Second
	// An older signaling node is told more changes as one roster, or the outboxes of a large room would overflow.
	manyChanges = 16
)

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
	r.tellMany(changed)
}

// judge does a moderator's act on a hand or a grant, and reports whether that changed the entry.
func (r *room) judge(p *peer, act control.Act) bool {
	entry := rosterCopy(p.entry)
	switch act {
	case control.Act_ACT_LOWER_HAND:
		entry.HandRaisedUnixMs = 0
		p.judged = true
	case control.Act_ACT_GRANT:
		r.moderation.setGrant(entry, true)
	case control.Act_ACT_GIVE_UP:
		r.moderation.setGrant(entry, false)
	case control.Act_ACT_MUTE, control.Act_ACT_ASK_UNMUTE, control.Act_ACT_UNSPECIFIED:
		return false
	}
	return r.renew(p, entry)
}

// muteBy mutes for a moderator; only the peer itself unmutes.
func (r *room) muteBy(p *peer, m *control.ModerateRequest) bool {
	source, _ := sources.Of(m.GetSource())
	entry := rosterCopy(p.entry)
	if setMuted(entry, source, true); sameEntry(entry, p.entry) {
		// The source is muted already.
		return false
	}
	setSilenced(entry, source)
	p.judged = true
	r.renew(p, entry)
	r.tellSilenced(p, source, m.GetBy())
	return true
}

func (r *room) tellSilenced(p *peer, source forward.Source, by string) {
	r.media.SetMuted(p.id, source, true)
	r.send(p, &control.PeerEvent{Event: &control.PeerEvent_Silenced{Silenced: &control.Silenced{Source: sources.Proto(source), By: by}}})
}

// askToUnmute asks a peer to unmute, and returns false if it was asked a short time ago.
func (r *room) askToUnmute(p *peer, m *control.ModerateRequest) bool {
	now := time.Now()
	if !p.askedAt.IsZero() && now.Sub(p.askedAt) < askUnmuteEvery {
		return false
	}
	p.askedAt = now
	r.send(p, &control.PeerEvent{Event: &control.PeerEvent_UnmuteAsked{UnmuteAsked: &control.UnmuteAsked{Source: m.GetSource(), By: m.GetBy()}}})
	return true
}

// tellMany tells everybody of several changed entries at once. Nobody of them is hidden.
func (r *room) tellMany(changed []*peer) {
	if len(changed) <= manyChanges {
		for _, p := range changed {
			r.tell(p)
		}
		return
	}
	for _, p := range changed {
		p.told, p.toldAt = p.entry, time.Now()
		r.version.seq++
		r.changes.add(&control.RosterChange{Change: &control.RosterChange_Updated{Updated: p.entry}})
	}
	r.tellChanges()
	for _, p := range r.peers {
		if !p.knowsRosterChanges {
			r.send(p, &control.PeerEvent{Seq: r.version.seq, Event: &control.PeerEvent_Roster{Roster: &control.Roster{Peers: r.peers.shownTo(p)}}})
		}
	}
}

// removeWhere also removes who is only expected, and refuses them later.
func (r *room) removeWhere(peer, identity string, reply *control.RemoveReply) {
	for id, p := range r.peers {
		if string(id) == peer || identity != "" && p.entry.GetIdentity() == identity {
			r.expel(p, removedRefusal(), reply)
			r.log.Info("peer removed by an operator", "peer", string(id), "identity", p.entry.GetIdentity())
		}
	}
}

// endCall removes everybody, also who is only expected, and closes the room, so that a later join opens it without its chat.
func (r *room) endCall(reply *control.RemoveReply) {
	for _, p := range r.peers {
		r.expel(p, endedRefusal(), reply)
	}
	r.log.Info("call ended for everybody", "peers", len(reply.GetRemoved()))
	r.close("the call was ended")
}

// expel removes a peer for good and adds it to the reply.
func (r *room) expel(p *peer, why *refusal, reply *control.RemoveReply) {
	r.moderation.remove(p.id)
	if p.outbox != nil {
		p.outbox.end(r.event(why.event()))
	}
	r.remove(p, "removed by an operator")
	reply.Removed = append(reply.Removed, string(p.id))
	reply.Identities = append(reply.Identities, p.entry.GetIdentity())
}
