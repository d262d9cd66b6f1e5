package forward

import (
	"fmt"
	"log/slog"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/sfu/forward/parse"

	"pgregory.net/rapid"
)

var epoch = time.Unix(1_800_000_000, 0)

func TestChooseLayer(t *testing.T) {
	all := []layerChoice{{rid: "f", height: 720, alive: true}, {rid: "q", height: 180, alive: true}, {rid: "h", height: 360, alive: true}}
	unknown := []layerChoice{{rid: "h", height: 0, alive: true}, {rid: "f", height: 0, alive: true}, {rid: "q", height: 0, alive: true}}
	for _, c := range []struct {
		layers []layerChoice
		wanted int
		want   string
	}{
		{all, 0, "q"},
		{all, 180, "q"},
		{all, 181, "h"},
		{all, 720, "f"},
		{all, 4000, "f"},
		{unknown, 0, "q"},
		{unknown, 300, "h"},
		{unknown, 1080, "f"},
		{[]layerChoice{{rid: "f", height: 720, alive: false}, {rid: "q", height: 180, alive: true}, {rid: "h", height: 360, alive: true}}, 720, "h"},
		{[]layerChoice{{rid: "f", height: 720, alive: false}, {rid: "q", height: 180, alive: false}}, 720, "f"},
	} {
		rungs := upToHeight(usableByHeight(slices.Clone(c.layers)), c.wanted)
		if got := rungs[len(rungs)-1]; got.rid != c.want {
			t.Errorf("%v at %d: %s, want %s", c.layers, c.wanted, got.rid, c.want)
		}
		for i, rung := range rungs[:len(rungs)-1] {
			if !rung.alive || rung.effectiveHeight() >= rungs[i+1].effectiveHeight() {
				t.Errorf("%v at %d: may be shown %v, want what is alive, each higher than the one before", c.layers, c.wanted, rungs)
			}
		}
	}
	if upToHeight(usableByHeight(nil), 1) != nil {
		t.Error("chose among nothing")
	}
}

func TestFormatsMatch(t *testing.T) {
	h264 := func(fmtp string, pt uint8) Codec { return Codec{MimeType: "video/H264", Fmtp: fmtp, PayloadType: pt} }
	negotiated := []Codec{
		vp8,
		h264("level-asymmetry-allowed=1;packetization-mode=0;profile-level-id=42e01f", 102),
		h264("level-asymmetry-allowed=1; packetization-mode=1; profile-level-id=42E01F", 104),
	}
	for _, c := range []struct {
		codec Codec
		want  uint8
		ok    bool
	}{
		{Codec{MimeType: "video/vp8", PayloadType: 120}, 96, true},
		{h264("packetization-mode=1;profile-level-id=42001f", 1), 104, true},
		{h264("profile-level-id=42001f", 1), 102, true},
		{h264("packetization-mode=1;profile-level-id=640032", 1), 0, false},
		{h264("packetization-mode=1;profile-level-id=", 1), 104, true},
		{Codec{MimeType: "video/AV1"}, 0, false},
	} {
		i := slices.Index(formats(negotiated), parse.FormatOf(c.codec.MimeType, c.codec.Fmtp))
		if (i >= 0) != c.ok || i >= 0 && negotiated[i].PayloadType != c.want {
			t.Errorf("%v matches number %d of %v, want payload type %d", c.codec, i, negotiated, c.want)
		}
	}
}

// eligible is one publication that a subscriber could be shown. Candidates come in order of arrival.
type candidate struct {
	key       trackKey
	muted     bool
	speaking  bool
	lastSpoke time.Time
}

// viewer is a subscriber "p0".
type viewer struct {
	slots   []Entry // of one kind, with what they show at present
	hasView bool
	wants   []Want
	held    func(trackKey) bool // its publisher is expected
}

// assignSlots is what the viewer's slots show after they have been assigned anew.
func (v viewer) assign(kind Kind, candidates []candidate) (table []Entry) {
	room := NewRoom(Config{}, slog.New(slog.DiscardHandler))
	for _, c := range candidates {
		p := room.members.publication(c.key)
		p.kind, p.muted, p.layers = kind, c.muted, []*Layer{{format: "f"}}
		if p.contends() {
			*room.speakers.voice(c.key.peer) = voice{speaking: c.speaking, lastSpoke: c.lastSpoke}
		}
	}
	sub := room.members.subscriber("p0")
	sub.hasView, sub.wants = v.hasView, v.wants
	group := sub.group(kind)
	for _, e := range v.slots {
		if v.held(e.key()) {
			sub.holds[e.key()] = epoch.Add(time.Second)
		}
		group.slots = append(group.slots, &Slot{room: room, cfg: SlotConfig{Kind: kind}, entry: e, formats: []string{"other", "f"}})
	}
	room.assignment.rankPublications()
	room.assignment.assignSlots(sub, kind, epoch)
	for _, s := range group.slots {
		table = append(table, s.entry)
	}
	return table
}

// drawViewer draws a subscriber "p0" whose slots show anything at all, even
// nonsense: a client's table is not to be trusted.
func drawViewer(t *rapid.T, kind Kind, sources []Source) (viewer, []candidate) {
	key := func(name string) trackKey {
		return trackKey{
			peer:   PeerID(fmt.Sprint("p", rapid.IntRange(0, 8).Draw(t, name))),
			source: rapid.SampledFrom(sources).Draw(t, name+" source"),
		}
	}
	var candidates []candidate
	for range rapid.IntRange(0, 12).Draw(t, "candidates") {
		k := key("candidate")
		if k.peer == "p0" || slices.ContainsFunc(candidates, func(c candidate) bool { return c.key == k }) {
			continue
		}
		candidates = append(candidates, candidate{
			key: k, muted: rapid.Bool().Draw(t, "muted"), speaking: rapid.IntRange(0, 3).Draw(t, "speaking") == 0,
			lastSpoke: epoch.Add(time.Duration(rapid.IntRange(0, 5).Draw(t, "spoke"))),
		})
	}
	held := make(map[trackKey]bool)
	v := viewer{hasView: rapid.Bool().Draw(t, "view"), held: func(k trackKey) bool { return held[k] && k.peer != "p0" }}
	for i := range rapid.IntRange(0, 6).Draw(t, "slots") {
		e := Entry{Mid: fmt.Sprint(i), Kind: kind}
		if rapid.Bool().Draw(t, "shows") {
			k := key("shown")
			e.Peer, e.Source = k.peer, k.source
			held[k] = rapid.Bool().Draw(t, "held")
		}
		v.slots = append(v.slots, e)
	}
	for range rapid.IntRange(0, 8).Draw(t, "wants") {
		k := key("want")
		size := rapid.IntRange(0, 2).Draw(t, "size") * 180
		v.wants = append(v.wants, Want{Peer: k.peer, Source: k.source, Width: size, Height: size})
	}
	return v, candidates
}

// checkTable says what holds for every table.
func checkTable(t *rapid.T, v viewer, candidates []candidate, table []Entry, again []Entry) {
	if len(table) != len(v.slots) {
		t.Fatal("not as many entries as slots")
	}
	seen := make(map[trackKey]bool)
	for i, e := range table {
		if e.Mid != v.slots[i].Mid || e.Kind != v.slots[i].Kind {
			t.Fatal("a slot changed its nature")
		}
		if e.Peer == "" {
			continue
		}
		if e.Peer == "p0" {
			t.Fatal("shown oneself")
		}
		if seen[e.key()] {
			t.Fatal("shown twice:", e)
		}
		seen[e.key()] = true
		published := slices.ContainsFunc(candidates, func(c candidate) bool { return c.key == e.key() })
		if !published && !v.held(e.key()) {
			t.Fatal("shown who is not there:", e)
		}
		// Whoever stays stays in place.
		first := slices.IndexFunc(v.slots, func(s Entry) bool { return s.Peer != "" && s.key() == e.key() })
		if first >= 0 && first != i {
			t.Fatalf("%v moved from %d to %d", e, first, i)
		}
	}
	if !slices.Equal(table, again) {
		t.Fatal("the table does not rest:", table, again)
	}
}

func TestAssignVideoProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v, candidates := drawViewer(t, KindVideo, []Source{SourceCamera, SourceScreen})
		table := v.assign(KindVideo, candidates)
		rested := v
		rested.slots = table
		checkTable(t, v, candidates, table, rested.assign(KindVideo, candidates))
		shown := func(k trackKey) bool {
			return slices.ContainsFunc(table, func(e Entry) bool { return e.Peer != "" && e.key() == k })
		}
		available := func(k trackKey) bool {
			return slices.ContainsFunc(candidates, func(c candidate) bool { return c.key == k && !c.muted })
		}
		// The first wants that there are, up to the number of slots, are shown.
		left := len(v.slots)
		counted := make(map[trackKey]bool)
		for _, w := range v.wants {
			k := trackKey{peer: w.Peer, source: w.Source}
			if !v.hasView || counted[k] {
				continue
			}
			counted[k] = true // the first line about a source counts
			if w.hidden() || !available(k) {
				continue
			}
			if left--; left < 0 {
				break
			}
			if !shown(k) {
				t.Fatalf("%v is wanted, there is room, and it is not shown: %v", k, table)
			}
		}
		// Without a view no camera is shown while a screen is not.
		if !v.hasView {
			missing := slices.ContainsFunc(candidates, func(c candidate) bool { return c.key.source == SourceScreen && !c.muted && !shown(c.key) })
			camera := slices.ContainsFunc(table, func(e Entry) bool { return e.Peer != "" && e.Source == SourceCamera })
			if missing && camera {
				t.Fatal("a camera before a screen:", table)
			}
			for _, c := range candidates {
				for _, other := range candidates {
					cameras := c.key.source == SourceCamera && other.key.source == SourceCamera
					if cameras && c.speaking && !c.muted && !shown(c.key) && shown(other.key) && !other.speaking {
						t.Fatalf("%v speaks and is not shown, %v is silent and is", c.key, other.key)
					}
				}
			}
		}
	})
}

func TestAssignAudioProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v, candidates := drawViewer(t, KindAudio, []Source{SourceMicrophone})
		table := v.assign(KindAudio, candidates)
		rested := v
		rested.slots = table
		checkTable(t, v, candidates, table, rested.assign(KindAudio, candidates))
		heard := func(c candidate) bool {
			return slices.ContainsFunc(table, func(e Entry) bool { return e.Peer != "" && e.key() == c.key })
		}
		for _, c := range candidates {
			if len(candidates) <= len(v.slots) && !heard(c) {
				t.Fatal("everybody fits, and somebody is not heard")
			}
			was := slices.ContainsFunc(v.slots, func(e Entry) bool { return e.Peer != "" && e.key() == c.key })
			if was && c.speaking && !heard(c) {
				t.Fatal("interrupted:", c)
			}
			for _, other := range candidates {
				if c.speaking && !heard(c) && heard(other) && !other.speaking {
					t.Fatalf("%v speaks and is not heard, %v is silent and is", c.key, other.key)
				}
			}
		}
	})
}

func TestSpeakersProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tracker := newSpeakerTracker()
		now := epoch
		updates := 0
		levels := make([]uint8, 4)
		const steps = 500 // of 20 ms
		for range steps {
			now = now.Add(20 * time.Millisecond)
			for i := range levels {
				if rapid.IntRange(0, 49).Draw(t, "change") == 0 {
					levels[i] = uint8(rapid.IntRange(0, 200).Draw(t, "level"))
				}
				tracker.observe(PeerID(fmt.Sprint(i)), levels[i], now)
			}
			list, changed, _ := tracker.update(now)
			if !changed {
				continue
			}
			updates++
			for i, s := range list {
				if s.Level < 0 || s.Level > 1 || math.IsNaN(s.Level) {
					t.Fatal(s)
				}
				if i > 0 && s.Level*127 > list[i-1].Level*127+swapMargin+0.001 {
					t.Fatal("not loudest first:", list)
				}
			}
		}
		if limit := int(steps*20*time.Millisecond/speakersInterval) + 1; updates > limit {
			t.Fatalf("%d updates", updates)
		}
	})
}

func TestSpeakers(t *testing.T) {
	tracker := newSpeakerTracker()
	now := epoch
	var list []Speaker
	talk := func(d time.Duration, levels map[PeerID]uint8) {
		for end := now.Add(d); now.Before(end); now = now.Add(20 * time.Millisecond) {
			for peer, level := range levels {
				tracker.observe(peer, level, now)
			}
			if l, changed, _ := tracker.update(now); changed {
				list = l
			}
		}
	}
	names := func() (out []PeerID) {
		for _, s := range list {
			out = append(out, s.Peer)
		}
		return out
	}
	expect := func(want ...PeerID) {
		t.Helper()
		if !slices.Equal(names(), want) {
			t.Fatalf("%v speak, want %v", names(), want)
		}
	}
	talk(time.Second, map[PeerID]uint8{"a": 30, "b": 70})
	expect("a")
	talk(400*time.Millisecond, map[PeerID]uint8{"a": 127, "b": 70}) // a pause between words
	expect("a")
	talk(time.Second, map[PeerID]uint8{"a": 30, "b": 28}) // a little louder: no swap
	expect("a", "b")
	talk(time.Second, map[PeerID]uint8{"a": 40, "b": 20})
	expect("b", "a")
	talk(2*time.Second, map[PeerID]uint8{"a": 30}) // b sends nothing at all
	expect("a")
	tracker.setMuted("a", true)
	talk(time.Second, map[PeerID]uint8{"a": 10})
	expect()
	tracker.setMuted("a", false)
	talk(time.Second, map[PeerID]uint8{"a": 10})
	expect("a")
	tracker.remove("a")
	talk(time.Second, nil)
	expect()
}

// Everybody in a large room gets the list: however many speak at once, it names the loudest few.
func TestManySpeakersAreNotAllListed(t *testing.T) {
	tracker := newSpeakerTracker()
	now := epoch
	for range 100 {
		now = now.Add(20 * time.Millisecond)
		for i := range 80 {
			tracker.observe(PeerID(fmt.Sprintf("%02d", i)), uint8(i/2), now) //nolint:gosec // below 40
		}
	}
	list, changed, _ := tracker.update(now)
	if !changed || len(list) != maxSpeakers || list[0].Peer != "00" || list[maxSpeakers-1].Peer != "15" {
		t.Fatalf("changed %v, listed %v; want the %d loudest of 80", changed, list, maxSpeakers)
	}
}
