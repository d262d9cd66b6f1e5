package replica

import (
	"slices"
	"sync"

	"github.com/holdfast-rtc/holdfast/control"
)

// Roster is one state of a room's roster. It never changes. A nil Roster has nobody.
type Roster struct {
	peers                []*control.Peer
	cameras, microphones int
	digest               func() uint64
}

// Of returns the roster of people in the order of their arrival.
func Of(peers []*control.Peer) *Roster {
	r := &Roster{peers: peers, digest: sync.OnceValue(func() uint64 { return control.RosterDigest(peers) })}
	for _, p := range peers {
		r.cameras += ones(!p.GetVideoMuted(), p.GetScreenShared())
		r.microphones += ones(!p.GetAudioMuted(), p.GetScreenAudio())
	}
	return r
}

// Peers returns the people in the order of their arrival. It is only to be read.
func (r *Roster) Peers() []*control.Peer {
	if r == nil {
		return nil
	}
	return r.peers
}

// On returns how many cameras and microphones are on, screens and their sound among them.
func (r *Roster) On() (cameras, microphones int) {
	if r == nil {
		return 0, 0
	}
	return r.cameras, r.microphones
}

// Digest returns the roster's control.RosterDigest, and 0 if nobody is in it.
func (r *Roster) Digest() uint64 {
	if len(r.Peers()) == 0 {
		return 0
	}
	return r.digest()
}

// Peer returns a person's row, or nil.
func (r *Roster) Peer(id string) *control.Peer {
	for _, p := range r.Peers() {
		if p.GetId() == id {
			return p
		}
	}
	return nil
}

// Change returns the roster after changes.
func (r *Roster) Change(changes ...*control.RosterChange) *Roster {
	latest := make(map[string]*control.Peer, len(changes)) // nil: left
	var order []string
	for _, c := range changes {
		id, now := changed(c)
		if _, again := latest[id]; !again {
			order = append(order, id)
		}
		latest[id] = now
	}
	peers := make([]*control.Peer, 0, len(r.Peers())+len(changes))
	for _, p := range r.Peers() {
		now, does := latest[p.GetId()]
		if !does {
			now = p
		}
		if now != nil {
			peers = append(peers, now)
		}
		delete(latest, p.GetId())
	}
	for _, id := range order {
		if p := latest[id]; p != nil {
			peers = append(peers, p)
		}
	}
	return Of(slices.Clip(peers))
}

func changed(c *control.RosterChange) (id string, now *control.Peer) {
	switch {
	case c.GetJoined() != nil:
		return c.GetJoined().GetId(), c.GetJoined()
	case c.GetUpdated() != nil:
		return c.GetUpdated().GetId(), c.GetUpdated()
	default:
		return c.GetLeft(), nil
	}
}

func ones(facts ...bool) (n int) {
	for _, fact := range facts {
		if fact {
			n++
		}
	}
	return n
}
