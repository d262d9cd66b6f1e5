package peer

import (
	"slices"
	"time"

	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

const viewPause = 200 * time.Millisecond

// audience is who else is in the room, in the order of joining.
type audience []wire.PeerID

// heard reports whether the view has changed.
func (a *audience) heard(message wire.Message, self wire.PeerID) (changed bool) {
	before := slices.Clone(*a)
	switch m := message.(type) {
	case *wire.Joined:
		a.set(m.Roster, m.Peer)
		return true // a new session has no view
	case *wire.Resumed:
		a.set(m.Roster, self)
		return true // nor may a new signaling node
	case *wire.Roster:
		a.set(m.Roster, self)
	case *wire.PeerJoined:
		a.add(m.Peer.Peer, self)
	case *wire.RosterChanges:
		*a = slices.DeleteFunc(*a, func(id wire.PeerID) bool { return slices.Contains(m.Left, id) })
		for _, entry := range m.Entries {
			a.add(entry.Peer, self)
		}
	case *wire.PeerLeft:
		*a = slices.DeleteFunc(*a, func(id wire.PeerID) bool { return id == m.Peer })
	default:
	}
	return !slices.Equal(before, *a)
}

func (a *audience) add(id, self wire.PeerID) {
	if id != self && !slices.Contains(*a, id) {
		*a = append(*a, id)
	}
}

func (a *audience) set(roster []wire.Peer, self wire.PeerID) {
	*a = nil
	for _, there := range roster {
		if there.Peer != self {
			*a = append(*a, there.Peer)
		}
	}
}

// view shows as many peers as there are slots, in a grid of 1280x720 pixels.
func (a audience) view(slots int) *wire.View {
	shown := a[:min(len(a), slots, wire.MaxWants)]
	width, height := uint32(1280), uint32(720)
	for columns := uint32(1); columns*columns < uint32(len(shown)); columns++ {
		width, height = 1280/(columns+1), 720/(columns+1)
	}
	view := &wire.View{Wants: wire.List[wire.Want]{}}
	for _, id := range shown {
		view.Wants = append(view.Wants, wire.Want{Peer: id, Source: wire.SourceCamera, Width: width, Height: height})
	}
	return view
}
