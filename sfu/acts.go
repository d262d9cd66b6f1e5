package sfu

import (
	"log/slog"
	"time"
	"unicode/utf8"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/sfu/forward"
	"github.com/holdfast-rtc/holdfast/sfu/sources"
)

// acts carries out what people say and change of themselves, and what moderators and applications change of people. A branch has its
// owner do so. The room's loop owns it.
type acts struct {
	teller *teller
	roll   *roll
	peers  peerMap
	media  *forward.Room
	loop   taskLoop
	log    *slog.Logger
	grace  time.Duration

	lines      chatLog
	reactions  reactions
	moderation moderation
	// lastHand is when the last hand was raised, in Unix milliseconds.
	lastHand int64
}

// chat sends a line to everybody attached, also to the speaker as the acknowledgement. It is kept for those who are expected or whose
// signaling node is dead or frozen: they attach within the grace time.
func (a *acts) chat(p *peer, say *control.Say) {
	line := a.lines.add(p.entry, say, time.Now())
	if line == nil {
		return
	}
	if p.entry.GetUnlisted() {
		a.roll.tell(p)
	}
	a.tellLine(line)
}

// tellLine tells everybody of a line, who then have it.
func (a *acts) tellLine(line *control.Chat) {
	a.teller.sendRoom(chatEvent(line))
	for _, other := range a.peers {
		if other.outbox != nil {
			other.chatSent = line.GetSeq()
		}
	}
}

// tellMissed repeats the lines since the peer came or was expected.
func (a *acts) tellMissed(p *peer) {
	for _, line := range a.lines.missed(p.chatFrom, p.chatSent, a.grace) {
		a.teller.send(p, chatEvent(line))
		p.chatSent = max(p.chatSent, line.GetSeq())
	}
}

// hand raises or lowers a peer's hand. A hand that is raised already keeps its place in the line.
func (a *acts) hand(p *peer, raised bool) {
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
		a.lastHand = max(time.Now().UnixMilli(), a.lastHand+1)
		entry.HandRaisedUnixMs = a.lastHand
	}
	if p.renew(entry) {
		a.roll.tellSoon(p)
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
func (a *acts) heed(p *peer, known *control.Peer) {
	if known.GetIdentity() != p.entry.GetIdentity() {
		return
	}
	entry := rosterCopy(p.entry)
	heedGrant(entry, known)
	if p.renew(entry) {
		a.roll.tell(p)
	}
}

// recall restores a peer from others' memory, if its node and signaling node are new.
func (a *acts) recall(p *peer, known *control.Peer) {
	a.heed(p, known)
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
	a.lastHand = max(a.lastHand, entry.GetHandRaisedUnixMs())
	if !p.renew(entry) {
		return
	}
	for _, source := range forward.Sources() {
		if (entry.GetSilenced()&^before)&sources.Bit(source) != 0 {
			a.tellSilenced(p, source, "")
		}
	}
	a.roll.tell(p)
}

// react sends an emoji, with others of the moment, to everybody attached.
func (a *acts) react(p *peer, emoji string) {
	if a.reactions.add(p.entry, emoji) {
		a.loop.after(a.reactions.due(time.Now()), a.tellReactions)
	}
}

func (a *acts) tellReactions() {
	a.teller.sendRoom(a.reactions.take(time.Now()))
}

const muteEvery = 200 * time.Millisecond

func (a *acts) mute(p *peer, message *control.Mute) {
	source, ok := sources.Of(message.GetSource())
	if !ok || !message.GetMuted() && p.forbidden()&sources.Bit(source) != 0 {
		return
	}
	a.media.SetMuted(p.id, source, message.GetMuted())
	entry := rosterCopy(p.entry)
	setMuted(entry, source, message.GetMuted())
	if !message.GetMuted() {
		entry.Silenced &^= sources.Bit(source)
		p.unmuted |= sources.Bit(source)
	}
	if p.renew(entry) {
		a.roll.tellSoon(p)
	}
}

func (a *acts) rename(p *peer, name string) {
	entry := rosterCopy(p.entry)
	entry.Name = name
	if name != "" && utf8.ValidString(name) && entryFits(entry) && p.renew(entry) {
		a.roll.tellSoon(p)
	}
}

const (
	askUnmuteEvery = 10 * time.Second
	// An older signaling node is told more changes as one roster, or the outboxes of a large room would overflow.
	manyChanges = 16
)

func (a *acts) moderate(m *control.ModerateRequest, reply *control.ModerateReply) {
	all := m.GetPeer() == "" && m.GetIdentity() == ""
	var changed []*peer
	for id, p := range a.peers {
		meant := string(id) == m.GetPeer() || m.GetIdentity() != "" && p.entry.GetIdentity() == m.GetIdentity() || all && string(id) != m.GetByPeer()
		if !meant || p.entry.GetHidden() {
			continue
		}
		if m.GetAct() == control.Act_ACT_ASK_UNMUTE && !a.askToUnmute(p, m) {
			reply.TooSoon = append(reply.TooSoon, string(id))
			continue
		}
		reply.Done = append(reply.Done, string(id))
		if m.GetAct() == control.Act_ACT_MUTE && a.muteBy(p, m) || m.GetAct() == control.Act_ACT_UPDATE && a.update(p, m.GetUpdate()) || a.judge(p, m.GetAct()) {
			changed = append(changed, p)
		}
	}
	a.log.Info("people moderated", "act", m.GetAct().String(), "by", m.GetByPeer(), "peers", len(reply.GetDone()), "changed", len(changed))
	a.roll.tellMany(changed)
}

// judge does a moderator's act on a hand or a grant, and reports whether that changed the entry.
func (a *acts) judge(p *peer, act control.Act) bool {
	entry := rosterCopy(p.entry)
	switch act {
	case control.Act_ACT_LOWER_HAND:
		entry.HandRaisedUnixMs = 0
		p.judged = true
	case control.Act_ACT_GRANT:
		a.moderation.setGrant(entry, true)
	case control.Act_ACT_GIVE_UP:
		a.moderation.setGrant(entry, false)
	case control.Act_ACT_MUTE, control.Act_ACT_ASK_UNMUTE, control.Act_ACT_UPDATE, control.Act_ACT_UNSPECIFIED:
		return false
	}
	return p.renew(entry)
}

// muteBy mutes for a moderator; only the peer itself unmutes.
func (a *acts) muteBy(p *peer, m *control.ModerateRequest) bool {
	source, _ := sources.Of(m.GetSource())
	entry := rosterCopy(p.entry)
	if setMuted(entry, source, true); sameEntry(entry, p.entry) {
		// The source is muted already.
		return false
	}
	setSilenced(entry, source)
	p.judged = true
	p.renew(entry)
	a.tellSilenced(p, source, m.GetBy())
	return true
}

func (a *acts) tellSilenced(p *peer, source forward.Source, by string) {
	a.media.SetMuted(p.id, source, true)
	a.teller.send(p, &control.PeerEvent{Event: &control.PeerEvent_Silenced{Silenced: &control.Silenced{Source: sources.Proto(source), By: by}}})
}

// askToUnmute asks a peer to unmute, and returns false if it was asked a short time ago.
func (a *acts) askToUnmute(p *peer, m *control.ModerateRequest) bool {
	now := time.Now()
	if !p.askedAt.IsZero() && now.Sub(p.askedAt) < askUnmuteEvery {
		return false
	}
	p.askedAt = now
	a.teller.send(p, &control.PeerEvent{Event: &control.PeerEvent_UnmuteAsked{UnmuteAsked: &control.UnmuteAsked{Source: m.GetSource(), By: m.GetBy()}}})
	return true
}

// endCall removes everybody, also who is only expected, and closes the room, so that a later join opens it without its chat.
func (r *room) endCall(reply *control.RemoveReply) {
	for _, p := range r.peers {
		r.people.expel(p, endedRefusal(), reply)
	}
	r.log.Info("call ended for everybody", "peers", len(reply.GetRemoved()))
	r.close("the call was ended")
}

// followLines numbers the chat as the owner does. It may not know the last lines of a former owner, and gives their numbers again.
func (a *acts) followLines(last uint64) {
	a.lines.follow(last)
	for _, p := range a.peers {
		p.chatSent = min(p.chatSent, last)
	}
}
