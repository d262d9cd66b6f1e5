package sfu

import (
	"time"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/sfu/forward"
)

// speakersPause, for each peer of a room, is the least time between two messages of who speaks: they change often, and go to everybody.
const speakersPause = 4 * time.Millisecond

// speakerNews is who speaks, and when it was told. The room's loop owns it.
type speakerNews struct {
	now     []forward.Speaker
	toldAt  time.Time
	waiting bool
}

// due returns how long to wait in a room of so many; zero or less: not at all.
func (n *speakerNews) due(people int, now time.Time) time.Duration {
	return time.Duration(people)*speakersPause - now.Sub(n.toldAt)
}

func (n *speakerNews) take(now time.Time) *control.Speakers {
	n.waiting, n.toldAt = false, now
	message := &control.Speakers{}
	for _, s := range n.now {
		message.Speakers = append(message.Speakers, &control.Speaker{Peer: string(s.Peer), Level: float32(s.Level)})
	}
	return message
}

// tellSpeakersSoon tells at once who speaks in a small room. A large room gathers the changes of a while.
func (r *room) tellSpeakersSoon() {
	if r.speakers.waiting {
		return
	}
	r.speakers.waiting = true
	if wait := r.speakers.due(len(r.peers), time.Now()); wait > 0 {
		r.after(wait, r.tellSpeakers)
	} else {
		r.tellSpeakers()
	}
}

func (r *room) tellSpeakers() {
	r.teller.sendAll(&control.PeerEvent{Event: &control.PeerEvent_Speakers{Speakers: r.speakers.take(time.Now())}})
}
