package forward

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// drawDemands draws what one subscriber could be shown.
func drawDemands(t *rapid.T) []slotDemand {
	var demands []slotDemand
	for i := range rapid.IntRange(0, 6).Draw(t, "videos") {
		d := slotDemand{slot: &Slot{}, rank: i, screen: rapid.IntRange(0, 3).Draw(t, "screen") == 0}
		bits := uint64(0)
		for range rapid.IntRange(1, 3).Draw(t, "layers") {
			// A higher layer may well be the cheaper one: a still picture is.
			bits = uint64(rapid.IntRange(0, 1500).Draw(t, "kbit")) * 1000
			d.layers = append(d.layers, layerChoice{bits: bits, alive: true})
		}
		d.top = rapid.IntRange(0, len(d.layers)-1).Draw(t, "top")
		d.held = rapid.IntRange(-1, d.top).Draw(t, "held")
		demands = append(demands, d)
	}
	return demands
}

func chosen(demands []slotDemand) []int {
	var all []int
	for _, d := range demands {
		all = append(all, d.chosen)
	}
	return all
}

func spent(demands []slotDemand) (bits uint64) {
	for i := range demands {
		if demands[i].chosen >= 0 {
			bits += demands[i].layers[demands[i].chosen].bits
		}
	}
	return bits
}

// steps is what was taken, in the order of importance in which the budget is spent.
func steps(demands []slotDemand) []bool {
	var taken []bool
	for _, d := range demands {
		taken = append(taken, d.chosen >= 0)
	}
	for _, screen := range []bool{true, false} {
		if screen {
			for _, d := range demands {
				for rung := 1; d.screen && rung <= d.top; rung++ {
					taken = append(taken, d.chosen >= rung)
				}
			}
			continue
		}
		for rung := 1; rung < 3; rung++ {
			for _, d := range demands {
				if !d.screen && rung <= d.top {
					taken = append(taken, d.chosen >= rung)
				}
			}
		}
	}
	return taken
}

func TestAllocateProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		demands := drawDemands(t)
		budget := uint64(rapid.IntRange(0, 5000).Draw(t, "budget")) * 1000
		spendBudget(demands, budget)
		first := chosen(demands)
		if got := spent(demands); got > budget {
			t.Fatalf("%d bits of a budget of %d", got, budget)
		}
		for _, d := range demands {
			if d.chosen > d.top {
				t.Fatal("more than is wanted")
			}
		}
		// Stable: what was chosen is chosen again.
		again := slices.Clone(demands)
		for i := range again {
			again[i].held = again[i].chosen
		}
		spendBudget(again, budget)
		if !slices.Equal(first, chosen(again)) {
			t.Fatalf("%v, then %v", first, chosen(again))
		}
		// Monotone: with more of it the first step that differs is one more.
		more := slices.Clone(demands)
		spendBudget(more, budget+uint64(rapid.IntRange(0, 5000).Draw(t, "more"))*1000)
		for i, taken := range steps(more) {
			if less := steps(demands)[i]; taken != less {
				if less {
					t.Fatalf("%v with less, %v with more", first, chosen(more))
				}
				break
			}
		}
	})
}

// TestAllocateOrder says in examples what the budget is spent on first.
func TestAllocateOrder(t *testing.T) {
	camera := func(rank, held int) slotDemand {
		return slotDemand{rank: rank, held: held, top: 2, layers: []layerChoice{{bits: 100}, {bits: 400}, {bits: 1500}}}
	}
	screen := slotDemand{rank: 2, held: -1, screen: true, top: 1, layers: []layerChoice{{bits: 200}, {bits: 1000}}}
	for _, c := range []struct {
		budget uint64
		want   []int // first camera, second camera, screen
	}{
		{0, []int{-1, -1, -1}},
		{104, []int{-1, -1, -1}}, // what is not shown yet needs a little more than it costs
		{105, []int{0, -1, -1}},
		{400, []int{0, 0, -1}},
		{410, []int{0, 0, 0}},
		{1300, []int{1, 1, 0}}, // the screen does not fit and is passed over
		{1320, []int{0, 0, 1}}, // the screen before the cameras
		{1700, []int{1, 0, 1}},
		{2000, []int{1, 1, 1}},
		{4000, []int{2, 1, 1}},
		{5000, []int{2, 2, 1}},
	} {
		demands := []slotDemand{screen, camera(1, -1), camera(0, -1)}
		spendBudget(demands, c.budget)
		if got := chosen(demands); !slices.Equal(got, c.want) {
			t.Errorf("%d: %v, want %v", c.budget, got, c.want)
		}
	}
}

// TestSoundIsNotCut: a budget below what sound costs leaves nothing for pictures.
func TestSoundIsNotCut(t *testing.T) {
	demands := []slotDemand{{slot: &Slot{}, held: -1, layers: []layerChoice{{bits: 10}}}}
	short := fitBudget(demands, 1000, 2000, epoch)
	if demands[0].chosen != -1 || short < 2010 {
		t.Fatalf("chosen %d, short of %d", demands[0].chosen, short)
	}
}

// simulcast publishes a camera in three layers and pushes frames to all of them.
type simulcast struct {
	st     *stage
	layers []*camera
}

func (st *stage) simulcast(peer PeerID) *simulcast {
	return &simulcast{st: st, layers: []*camera{st.camera(peer, "q", 180), st.camera(peer, "h", 360), st.camera(peer, "f", 720)}}
}

// run sends for a while, a frame every 40 ms: 1, 3 and 10 packets of 1000 bytes,
// which are 213, 638 and 2128 kbit/s with all headers.
func (s *simulcast) run(d time.Duration) {
	for range d / (40 * time.Millisecond) {
		for i, c := range s.layers {
			keyframe := c.asked() > 0
			c.mu.Lock()
			c.plis = 0
			c.mu.Unlock()
			c.burst(keyframe, []int{1, 3, 10}[i])
		}
		s.st.pass(40 * time.Millisecond)
	}
}

// TestNarrowPath takes a subscriber's budget away bit by bit and gives it back:
// the picture steps down at once, is paused last and said to be, and comes back
// one step after the other.
func TestNarrowPath(t *testing.T) {
	onStage(t, Config{}, func(st *stage) {
		alice := st.simulcast("alice")
		view := st.slot("bob", "1", KindVideo)
		other := st.slot("carol", "1", KindVideo)
		for _, v := range []*screenful{view, other} {
			v.slot.Ready()
		}
		for _, peer := range []PeerID{"bob", "carol"} {
			st.room.SetView(peer, []Want{{Peer: "alice", Source: SourceCamera, Width: 1280, Height: 720}})
		}
		height := func(v *screenful) int {
			last := 0
			for _, p := range v.take() {
				if h := parseVP8(p.Payload).Height; h > 0 {
					last = h
				}
			}
			return last
		}
		alice.run(4 * time.Second)
		if got := height(view); got != 720 {
			t.Fatalf("shown %d lines, want 720", got)
		}
		height(other)
		for _, c := range []struct {
			budget uint64
			lines  int // of the keyframe that comes; 0: none
			paused bool
		}{
			{1_000_000, 360, false},
			{300_000, 180, false},
			{100_000, 0, true},
			{230_000, 180, false},
			{700_000, 0, false}, // not enough for a step up with its margin
			{900_000, 360, false},
			{5_000_000, 720, false},
		} {
			st.room.SetBudget("bob", c.budget)
			alice.run(3 * time.Second)
			packets := len(view.peek())
			if got := height(view); got != c.lines {
				t.Errorf("budget %d: a keyframe of %d lines, want %d", c.budget, got, c.lines)
			}
			entry := st.room.Table("bob")[0]
			if entry.Paused != c.paused || entry.Peer != "alice" || (packets < 10) != c.paused {
				t.Errorf("budget %d: %d packets in 3 s, the table says %+v", c.budget, packets, entry)
			}
		}
		for _, p := range other.peek() {
			if got := parseVP8(p.Payload).Height; got != 0 && got != 720 {
				t.Fatalf("the other viewer got a keyframe of %d lines", got)
			}
		}
	})
}

// pathStub is a transport without a network.
type pathStub struct {
	numbers uint16
	bytes   int
	padding int
	wanted  uint64
	target  uint64
}

func (p *pathStub) Target() uint64 { return p.target }

func (p *pathStub) Next(bytes int) uint16 { p.numbers++; p.bytes += bytes; return p.numbers - 1 }

func (p *pathStub) Probe(wanted uint64, _ bool) int { p.wanted = wanted; return p.padding }

// TestNumbersAndProbes: everything written is numbered in order, and padding goes
// out as retransmission while the budget is short, and at no other time.
func TestNumbersAndProbes(t *testing.T) {
	onStage(t, Config{}, func(st *stage) {
		const id = 5
		alice := st.simulcast("alice")
		v, path := &screenful{}, &pathStub{}
		v.slot = st.room.AddSlot(SlotConfig{
			Peer: "bob", Mid: "1", Kind: KindVideo, Writer: v, SSRC: 4711, RTXSSRC: 4712, Codecs: []Codec{vp8}, Path: path, TransportSequenceID: id,
		})
		v.slot.Ready()
		st.room.SetView("bob", []Want{{Peer: "alice", Source: SourceCamera, Width: 1280, Height: 720}})
		alice.run(2 * time.Second)
		if path.wanted != 0 {
			t.Error("probed without a budget")
		}
		st.room.SetBudget("bob", 300_000)
		path.padding = 500
		alice.run(time.Second)
		// 2.1 Mbit/s for all layers, and the margin.
		if path.wanted < 2_200_000 || path.wanted > 2_700_000 {
			t.Errorf("wanted %d", path.wanted)
		}
		padding := 0
		for i, p := range v.take() {
			if got := p.GetExtension(id); len(got) != 2 || int(got[0])<<8|int(got[1]) != i {
				t.Fatalf("packet %d has the number %v", i, got)
			}
			if p.Padding {
				padding++
				if p.SSRC != 4712 || p.PayloadType != vp8.RTXPayloadType || p.Payload[len(p.Payload)-1] != byte(len(p.Payload)) {
					t.Fatal("padding is not as it should be:", p)
				}
			}
		}
		if padding != 2*50 || st.room.Stats().ProbePackets != uint64(padding) {
			t.Errorf("%d packets of padding in a second of ticks, counted %d", padding, st.room.Stats().ProbePackets)
		}
		v.take()
		st.room.SetBudget("bob", 0)
		alice.run(time.Second)
		for _, p := range v.take()[100:] {
			if p.Padding {
				t.Fatal("padding while nothing is short")
			}
		}
	})
}

// TestMorePublishersThanSlots: the page's order decides, and pins.
func TestMorePublishersThanSlots(t *testing.T) {
	onStage(t, Config{}, func(st *stage) {
		var wants []Want
		for i := range 6 {
			peer := PeerID(fmt.Sprint("p", i))
			st.camera(peer, "", 180)
			wants = append(wants, Want{Peer: peer, Source: SourceCamera, Width: 320, Height: 180})
		}
		st.slot("bob", "1", KindVideo)
		st.slot("bob", "2", KindVideo)
		st.shows("bob", "p0", "p1")
		st.room.SetView("bob", append([]Want{wants[4]}, wants...))
		st.shows("bob", "p0", "p4")
		st.room.SetView("bob", append([]Want{wants[4], wants[5]}, wants...))
		st.shows("bob", "p5", "p4")
	})
}

// TestSpeakersAreShown: without a word from the page whoever speaks gets a slot,
// from who has been silent, and keeps it in the pauses.
func TestSpeakersAreShown(t *testing.T) {
	onStage(t, Config{}, func(st *stage) {
		var voices []*microphone
		for i := range 4 {
			peer := PeerID(fmt.Sprint("p", i))
			st.camera(peer, "", 180)
			voices = append(voices, st.microphone(peer))
		}
		talk := func(m *microphone) {
			for range 50 {
				m.say(20)
				st.pass(20 * time.Millisecond)
			}
		}
		st.slot("bob", "1", KindVideo)
		st.slot("bob", "2", KindVideo)
		st.shows("bob", "p0", "p1")
		talk(voices[1])
		st.shows("bob", "p0", "p1")
		talk(voices[3])
		st.shows("bob", "p3", "p1")
		st.pass(3 * time.Second)
		st.shows("bob", "p3", "p1")
	})
}
