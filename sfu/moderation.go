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
	id := forward.PeerID(entry.GetId())
	if moderator {
		delete(m.demoted, id)
	} else if len(m.demoted) < maxRemoved {
		m.demoted[id] = entry.GetGrantJudgedUnixMs()
	}
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
