package sfu

import (
	"time"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/sfu/forward"
)

// maxRemoved is how many removals, and how many demotions, are remembered. Past it people are still removed, but may resume.
const maxRemoved = 1000

// moderation remembers, for people who are gone, who was removed and whose grant was taken back. The room's loop owns it.
type moderation struct {
	// removed has those whom an operator removed.
	removed map[forward.PeerID]bool
	// demoted says when a grant was taken back, in Unix milliseconds: earlier words about it do not count.
	demoted map[forward.PeerID]int64
}

func newModeration() moderation {
	return moderation{removed: map[forward.PeerID]bool{}, demoted: map[forward.PeerID]int64{}}
}

func (m *moderation) remove(id forward.PeerID) {
	if len(m.removed) < maxRemoved {
		m.removed[id] = true
	}
}

// setGrant gives or takes back the grant of an entry that nobody has yet, later than any former change.
func (m *moderation) setGrant(entry *control.Peer, moderator bool) {
	entry.Moderator, entry.GrantJudgedUnixMs = moderator, max(time.Now().UnixMilli(), entry.GetGrantJudgedUnixMs()+1)
	m.note(entry)
}

// note takes over a later word about the grant of a person who is gone or may go.
func (m *moderation) note(entry *control.Peer) {
	id, judged := forward.PeerID(entry.GetId()), entry.GetGrantJudgedUnixMs()
	former, known := m.demoted[id]
	switch {
	case judged <= former:
	case entry.GetModerator():
		delete(m.demoted, id)
	case known || len(m.demoted) < maxRemoved:
		m.demoted[id] = judged
	}
}

// demotedProto is what the room's other nodes are told, since any of them may become the owner.
func (m *moderation) demotedProto() []*control.Peer {
	var told []*control.Peer
	for id, judged := range m.demoted {
		told = append(told, &control.Peer{Id: string(id), GrantJudgedUnixMs: judged})
	}
	return told
}

// heed takes the grant of an entry back that was taken back while its person was gone.
func (m *moderation) heed(entry *control.Peer) {
	heedGrant(entry, &control.Peer{GrantJudgedUnixMs: m.demoted[forward.PeerID(entry.GetId())]})
}

func endedRefusal() *refusal {
	ended := refuse(control.Refusal_REFUSAL_REMOVED, "somebody who runs the room ended the call for everybody")
	ended.ended = true
	return ended
}

func removedRefusal() *refusal {
	return refuse(control.Refusal_REFUSAL_REMOVED, "somebody who runs the room removed this peer")
}
