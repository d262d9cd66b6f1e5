package forward

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// picture is what all slots of a room show, and what subscribers would be sent if their budgets allowed.
func (r *Room) picture() []string {
	var lines []string
	for _, sub := range r.members.subscribers {
		lines = append(lines, fmt.Sprint(sub.peer, " is short of ", sub.short))
		for _, s := range sub.slots {
			lines = append(lines, fmt.Sprint(sub.peer, s.tableEntry(), ridName(s.target)))
		}
		if table := r.Table(sub.peer); !slices.EqualFunc(table, sub.slots, func(e Entry, s *Slot) bool { return e == s.tableEntry() }) {
			lines = append(lines, fmt.Sprint(sub.peer, " was told ", table))
		}
	}
	slices.Sort(lines)
	return lines
}

// TestArrangeLeavesNothingOut: whatever happens, and whatever little is worked out for it, nothing changes when all is worked out
// anew.
func TestArrangeLeavesNothingOut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		room := NewRoom(Config{}, slog.New(slog.DiscardHandler))
		now := time.Now()
		peer := func() PeerID { return PeerID(fmt.Sprint("p", rapid.IntRange(0, 6).Draw(t, "peer"))) }
		source := func() Source {
			return rapid.SampledFrom([]Source{SourceMicrophone, SourceCamera, SourceScreen, SourceScreenAudio}).Draw(t, "source")
		}
		kindOf := func(s Source) (Kind, Codec) {
			if s.Kind() == KindAudio {
				return KindAudio, opus
			}
			return KindVideo, vp8
		}
		acts := map[string]func(){
			"publish": func() {
				s := source()
				kind, codec := kindOf(s)
				room.AddLayer(LayerConfig{Peer: peer(), Source: s, Kind: kind, Codec: codec, RID: rapid.SampledFrom([]string{"q", "f"}).Draw(t, "rid")})
			},
			"unpublish": func() {
				if numbers := slices.Sorted(maps.Keys(room.members.layers)); len(numbers) > 0 {
					room.members.layers[rapid.SampledFrom(numbers).Draw(t, "layer")].Close()
				}
			},
			"slot": func() {
				n := rapid.IntRange(0, 5).Draw(t, "mid")
				kind, codec := kindOf([]Source{SourceMicrophone, SourceCamera}[n%2])
				room.AddSlot(SlotConfig{Peer: peer(), Mid: fmt.Sprint(n), Stream: fmt.Sprint(n / 2), Kind: kind, Codecs: []Codec{codec}, Writer: &sink{}}).Ready()
			},
			"mute":   func() { room.SetMuted(peer(), source(), rapid.Bool().Draw(t, "muted")) },
			"budget": func() { room.SetBudget(peer(), uint64(rapid.IntRange(0, 3).Draw(t, "budget")*100_000)) },
			"leave":  func() { room.RemovePeer(peer()) },
			"view": func() {
				height := rapid.IntRange(0, 2).Draw(t, "height") * 360
				room.SetView(peer(), []Want{{peer(), SourceCamera, height, height}, {peer(), SourceScreen, 9, 9}, {peer(), SourceCamera, 9, 9}})
			},
			"table": func() {
				room.SetTable(peer(), []Entry{{Mid: "1", Kind: KindVideo, Peer: peer(), Source: SourceCamera}, {Mid: "0", Kind: KindAudio, Peer: peer(), Source: SourceMicrophone}})
			},
			"speak": func() {
				v := room.speakers.voice(peer())
				v.speaking = rapid.Bool().Draw(t, "speaking")
				for _, v := range room.speakers.voices {
					if v.speaking {
						v.lastSpoke = now
					}
				}
				room.takeSpeakers()
			},
			"look": func() { room.changed.layers = true },
		}
		for range 12 { // so that places are scarce
			acts["publish"]()
			acts["slot"]()
		}
		names := slices.Sorted(maps.Keys(acts))
		for range 60 {
			var done []string
			for range rapid.IntRange(1, 3).Draw(t, "at once") {
				name := rapid.SampledFrom(names).Draw(t, "act")
				acts[name]()
				done = append(done, name)
			}
			for len(room.tasks) > 0 {
				(<-room.tasks)()
			}
			room.updateSubscribers(now) // at one time: what time changes is not meant here
			before := room.picture()
			for _, sub := range room.members.subscribers {
				for _, s := range sub.slots {
					s.source = nil
				}
			}
			room.changed.tables = true
			room.updateSubscribers(now)
			if after := room.picture(); !slices.Equal(before, after) {
				t.Fatalf("%s: %v\nbecame, worked out anew, %v", done, before, after)
			}
		}
	})
}

// TestWhoComesBackAtOnceKeepsHisPlace, before anybody has looked.
func TestWhoComesBackAtOnceKeepsHisPlace(t *testing.T) {
	room := NewRoom(Config{}, slog.New(slog.DiscardHandler))
	publish := func(peers ...PeerID) {
		for _, peer := range peers {
			room.AddLayer(LayerConfig{Peer: peer, Source: SourceCamera, Kind: KindVideo, Codec: vp8})
		}
	}
	shown := func() (peers []PeerID) {
		room.handleTasks(<-room.tasks)
		for _, e := range room.Table("viewer") {
			peers = append(peers, e.Peer)
		}
		return peers
	}
	publish("a", "b", "c")
	for _, mid := range []string{"1", "2", "3"} {
		room.AddSlot(SlotConfig{Peer: "viewer", Mid: mid, Kind: KindVideo, Codecs: []Codec{vp8}, Writer: &sink{}})
	}
	before := shown()
	room.RemovePeer("a")
	room.RemovePeer("b")
	publish("b", "a")
	if after := shown(); !slices.Equal(after, before) {
		t.Errorf("shown are %v, want %v as before", after, before)
	}
}

// TestArrangeAllocatesNothing, however many are in the room.
func TestArrangeAllocatesNothing(t *testing.T) {
	for _, views := range []bool{true, false} {
		c := newCrowd(t, 30, 3, 6, views)
		for range 3 * len(c.peers) { // every layer's list of slots gets as long as it ever will
			c.speak()
		}
		before := c.room.Table(c.peers[0])
		for name, work := range c.works() {
			if allocations := testing.AllocsPerRun(100, work); allocations != 0 {
				t.Errorf("%s, views %v: %v allocations", name, views, allocations)
			}
		}
		if slices.Equal(before, c.room.Table(c.peers[0])) {
			t.Error("a hundred speakers have changed nothing")
		}
	}
}

// TestAMuteConcernsFew: in a large room a camera that is turned off or on concerns those whose slots may change by it. All others' slots are
// not looked at.
func TestAMuteConcernsFew(t *testing.T) {
	const people, pictures = 60, 6
	all := uint64((people - 1) * pictures)
	for _, views := range []bool{true, false} {
		c := newCrowd(t, people, 3, pictures, views)
		room := c.room
		last := c.peers[(c.turn+people-7)%people] // speaks, and so is shown without a view
		silent := c.peers[(c.turn+3)%people]
		shownBy := uint64(0)
		for _, sub := range room.members.subscribers {
			if sub.shows(trackKey{peer: silent, source: SourceCamera}) {
				shownBy++
			}
		}
		looked := func(peer PeerID, source Source, muted bool) uint64 {
			before := room.assignment.assigned
			room.SetMuted(peer, source, muted)
			c.drain()
			room.updateSubscribers(c.now)
			return room.assignment.assigned - before
		}
		if got := looked(silent, SourceMicrophone, true) + looked(silent, SourceMicrophone, false); got != 0 {
			t.Errorf("views %v: %d slots were looked at for a microphone of somebody silent", views, got)
		}
		if views {
			if got := looked(last, SourceCamera, true) + looked(last, SourceCamera, false); got != 0 {
				t.Errorf("%d slots were looked at, although every view has a slot for all that it wants", got)
			}
			continue
		}
		if got := looked(silent, SourceCamera, true) + looked(silent, SourceCamera, false); shownBy > 0 || got != 0 {
			t.Errorf("%d slots were looked at for the camera of somebody silent whom %d show", got, shownBy)
		}
		if got := looked(last, SourceCamera, true); got != all {
			t.Errorf("%d slots were looked at for a camera that everybody shows, want %d", got, all)
		}
		if got := looked(last, SourceCamera, false); got != all {
			t.Errorf("%d slots were looked at for the camera of a speaker, want %d", got, all)
		}
	}
}

// TestViewersComeAndGoWithoutOthers: who publishes nothing costs the other people's slots nothing.
func TestViewersComeAndGoWithoutOthers(t *testing.T) {
	c := newCrowd(t, 20, 3, 6, false)
	before := c.room.assignment.assigned
	c.room.AddSlot(SlotConfig{Peer: "viewer", Mid: "1", Kind: KindVideo, Codecs: []Codec{vp8}, Writer: &sink{}}).Ready()
	c.drain()
	c.room.updateSubscribers(c.now)
	c.room.RemovePeer("viewer")
	c.drain()
	c.room.updateSubscribers(c.now)
	if got := c.room.assignment.assigned - before; got != 1 {
		t.Errorf("%d slots were looked at for a viewer with one slot", got)
	}
}
