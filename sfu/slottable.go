package sfu

import (
	"sync"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/sfu/forward"
)

// mediaNews holds what forward has said and the room's loop has not yet taken: whose tables have changed, and the newest speakers.
// It is bounded, and forward's loop never waits for the room's.
type mediaNews struct {
	wake chan struct{}

	mu       sync.Mutex                  // guards the fields below
	tables   map[forward.PeerID]struct{} // of which there is a new one
	speakers []forward.Speaker
	spoken   bool // speakers is news
}

func newMediaNews() *mediaNews {
	return &mediaNews{wake: make(chan struct{}, 1), tables: map[forward.PeerID]struct{}{}}
}

// slots is forward's OnSlots.
func (n *mediaNews) slots(peer forward.PeerID) {
	n.mu.Lock()
	n.tables[peer] = struct{}{}
	n.mu.Unlock()
	n.ring()
}

// speak is forward's OnSpeakers.
func (n *mediaNews) speak(speakers []forward.Speaker) {
	n.mu.Lock()
	n.speakers, n.spoken = speakers, true
	n.mu.Unlock()
	n.ring()
}

func (n *mediaNews) ring() {
	select {
	case n.wake <- struct{}{}:
	default: // The loop has been woken and has not looked yet.
	}
}

// take empties the news.
func (n *mediaNews) take() (tables map[forward.PeerID]struct{}, speakers []forward.Speaker, spoken bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	tables, speakers, spoken = n.tables, n.speakers, n.spoken
	n.tables, n.speakers, n.spoken = map[forward.PeerID]struct{}{}, nil, false
	return tables, speakers, spoken
}

// slotsProto writes a table as a message.
func slotsProto(table []forward.Entry) []*control.Slot {
	slots := make([]*control.Slot, 0, len(table))
	for _, entry := range table {
		kind := control.Kind_KIND_VIDEO
		if entry.Kind == forward.KindAudio {
			kind = control.Kind_KIND_AUDIO
		}
		slots = append(slots, &control.Slot{Mid: entry.Mid, Kind: kind, Peer: string(entry.Peer), Source: sourceProto(entry.Source), Paused: entry.Paused})
	}
	return slots
}

// tableOf reads the slots that a client says it has. What makes no sense is left out.
func tableOf(slots []*control.Slot, limit int) []forward.Entry {
	var table []forward.Entry
	for _, slot := range slots {
		source, ok := sourceOf(slot.GetSource())
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

// wantsOf reads a view message; limit bounds it.
func wantsOf(view *control.View, limit int) []forward.Want {
	wants := make([]forward.Want, 0, min(len(view.GetWants()), limit))
	for _, want := range view.GetWants() {
		source, ok := sourceOf(want.GetSource())
		if !ok || len(wants) >= limit {
			continue
		}
		wants = append(wants, forward.Want{
			Peer: forward.PeerID(want.GetPeer()), Source: source, Width: pixels(want.GetWidth()), Height: pixels(want.GetHeight()),
		})
	}
	return wants
}

// maxPixels is more than any screen has; it keeps sums of areas far from overflow.
const maxPixels = 1 << 15

func pixels(n uint32) int { return int(min(n, maxPixels)) }

func sourceProto(source forward.Source) control.Source {
	switch source {
	case forward.SourceMicrophone:
		return control.Source_SOURCE_MICROPHONE
	case forward.SourceCamera:
		return control.Source_SOURCE_CAMERA
	case forward.SourceScreen:
		return control.Source_SOURCE_SCREEN
	}
	return control.Source_SOURCE_UNSPECIFIED
}
