package sfu

import (
	"sync/atomic"
	"time"

	"github.com/holdfast-rtc/holdfast/control"
)

// member is another node of a room: at the owner one of the branches, at a branch the owner. The room's loop owns it.
type member struct {
	place *control.Place
	// why says in words why the branch was appointed, at the time since.
	why   string
	since time.Time

	// link is nil while it is down, which it has been since cutAt. ready says that a branch has answered over it.
	link  *linkStream
	ready bool
	cutAt time.Time
	// gathering says that nobody more goes there, and that the branch closes once it is empty.
	gathering bool
	// draining says that the branch takes nobody more.
	draining bool
	// counted packets had gone over the link at countedAt, at this rate.
	counted   uint64
	countedAt time.Time
	perSecond float64
	// ending is closed when the room gives the member up: the link is not made anew. ended is closed when its last words have had their time.
	ending chan struct{}
	ended  chan struct{}
	// beats says that the branch has sent heartbeats over some link. Links' goroutines write it.
	beats atomic.Bool
	// others are, at a branch, the owner's other branches.
	others []*control.Place
}

func newMember(place *control.Place, why string, now time.Time) *member {
	return &member{place: place, why: why, since: now, cutAt: now, ending: make(chan struct{}), ended: make(chan struct{})}
}

// refusal sends somebody to the member; nil: to nobody.
func (m *member) refusal() *refusal {
	if m == nil {
		return nil
	}
	return elsewhere(m.place)
}

func (m *member) up() bool { return m != nil && m.link != nil && m.ready }
