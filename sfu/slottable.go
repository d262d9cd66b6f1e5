package sfu

import (
	"sync"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/sfu/forward"
	"github.com/holdfast-rtc/holdfast/sfu/sources"
)

// mediaNews is what the media loop has to tell the room's loop. It notes what has changed and not how often, so that it is bounded and
// the media loop never waits.
type mediaNews struct {
	wake chan struct{}

	mu       sync.Mutex // guards the fields below
	peers    map[forward.PeerID]peerNews
	speakers []forward.Speaker
	spoken   bool
}

type peerNews struct{ table, path, senders, rests bool }

func newMediaNews() *mediaNews {
	return &mediaNews{wake: make(chan struct{}, 1), peers: map[forward.PeerID]peerNews{}}
}

func (n *mediaNews) slots(peer forward.PeerID) { n.tell(peer, peerNews{table: true}) }

func (n *mediaNews) path(peer forward.PeerID) { n.tell(peer, peerNews{path: true}) }

func (n *mediaNews) sends(peer forward.PeerID) { n.tell(peer, peerNews{senders: true}) }

func (n *mediaNews) rests(peer forward.PeerID) { n.tell(peer, peerNews{rests: true}) }

func (n *mediaNews) tell(peer forward.PeerID, news peerNews) {
	n.mu.Lock()
	before := n.peers[peer]
	n.peers[peer] = peerNews{
		table: before.table || news.table, path: before.path || news.path, senders: before.senders || news.senders, rests: before.rests || news.rests,
	}
	n.mu.Unlock()
	n.ring()
}

func (n *mediaNews) speak(speakers []forward.Speaker) {
	n.mu.Lock()
	n.speakers, n.spoken = speakers, true
	n.mu.Unlock()
	n.ring()
}

func (n *mediaNews) ring() {
	select {
	case n.wake <- struct{}{}:
	default:
		// The loop has been woken already.
	}
}

func (n *mediaNews) take() (peers map[forward.PeerID]peerNews, speakers []forward.Speaker, spoken bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	peers, speakers, spoken = n.peers, n.speakers, n.spoken
	n.peers, n.speakers, n.spoken = map[forward.PeerID]peerNews{}, nil, false
	return peers, speakers, spoken
}

// slotsFor is the slot table for a peer's signaling node. A slot with the sound of a screen is shown empty to one that cannot name it.
func slotsFor(p *peer, table []forward.Entry) []*control.Slot {
	if !p.knowsScreenAudio {
		for i := range table {
			if table[i].Source == forward.SourceScreenAudio {
				table[i].Peer, table[i].Source = "", ""
			}
		}
	}
	return slotsProto(table)
}

func slotsProto(table []forward.Entry) []*control.Slot {
	slots := make([]*control.Slot, 0, len(table))
	for _, entry := range table {
		kind := control.Kind_KIND_VIDEO
		if entry.Kind == forward.KindAudio {
			kind = control.Kind_KIND_AUDIO
		}
		slots = append(slots, &control.Slot{Mid: entry.Mid, Kind: kind, Peer: string(entry.Peer), Source: sources.Proto(entry.Source), Paused: entry.Paused})
	}
	return slots
}

func lacksProto(lacks []forward.Lack) []*control.Lack {
	var list []*control.Lack
	for _, l := range lacks {
		list = append(list, &control.Lack{Peer: string(l.Peer), Source: sources.Proto(l.Source), Codec: l.Codec})
	}
	return list
}

// tableOf reads the slot table that a client brings from its former node. It leaves out slots that name nobody, or no known source.
func tableOf(slots []*control.Slot, limit int) []forward.Entry {
	var table []forward.Entry
	for _, slot := range slots {
		source, ok := sources.Of(slot.GetSource())
		if !ok || slot.GetMid() == "" || slot.GetPeer() == "" || len(table) >= limit {
			continue
		}
		kind := forward.KindVideo
		if slot.GetKind() == control.Kind_KIND_AUDIO {
			kind = forward.KindAudio
		}
		table = append(table, forward.Entry{Mid: slot.GetMid(), Kind: kind, Peer: forward.PeerID(slot.GetPeer()), Source: source})
	}
	return table
}

func wantsOf(view *control.View, limit int) []forward.Want {
	wants := make([]forward.Want, 0, min(len(view.GetWants()), limit))
	for _, want := range view.GetWants() {
		source, ok := sources.Of(want.GetSource())
		if !ok || len(wants) >= limit {
			continue
		}
		wants = append(wants, forward.Want{
			Peer: forward.PeerID(want.GetPeer()), Source: source, Width: pixels(want.GetWidth()), Height: pixels(want.GetHeight()),
		})
	}
	return wants
}

// maxPixels is more than any screen has in one direction, and so little that sums of areas cannot overflow.
const maxPixels = 1 << 15

func pixels(n uint32) int { return int(min(n, maxPixels)) }
