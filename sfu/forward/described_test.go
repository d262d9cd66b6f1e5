package forward

import (
	"encoding/binary"
	"encoding/hex"
	"log/slog"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-rtc/holdfast/sfu/descriptor"
	"github.com/holdfast-rtc/holdfast/sfu/forward/layerfilter"

	"github.com/pion/rtp"
	"pgregory.net/rapid"
)

var av1 = Codec{MimeType: "video/AV1", ClockRate: 90000, PayloadType: 45, RTXPayloadType: 46}

// descriptorID is the publisher's, receiverID the subscribers'.
const descriptorID, receiverID = 12, 7

// scalability is a mode as Chromium has it: the descriptor of its first frame, and the templates of a temporal unit of each temporal
// layer in turn, from the lowest spatial layer to the highest.
type scalability struct {
	structure string
	key       []uint8
	turns     [][]uint8
}

var (
	l1t3 = scalability{"800001800214eaa860414d141020842703bf021b", []uint8{0}, [][]uint8{{1}, {3}, {2}, {4}}}
	// All of it is active.
	l3t3Key = scalability{
		"800002c0081485214eaaaaa8000600004000100002aa80a8000600004000100002a000a800060000400016d549241b5524906d54923157e001974ca864330e222396eca8655304224390eca8775300ef008601df010d03bf021bff80",
		[]uint8{0, 5, 10},
		[][]uint8{{1, 6, 11}, {3, 8, 13}, {2, 7, 12}, {4, 9, 14}},
	}
)

// scalable is a camera that sends one stream in layers. Its payload is noise.
type scalable struct {
	camera
	mode   scalability
	number uint16 // of the next frame
	turn   int
	codec  Codec
}

func (st *stage) scalable(peer PeerID, mode scalability) *scalable {
	c := &scalable{camera: camera{st: st, sequence: 65500, timestamp: 77}, mode: mode, number: 65530, codec: av1}
	c.layer = st.room.AddLayer(LayerConfig{
		Peer: peer, Source: SourceCamera, Kind: KindVideo, Codec: av1, DescriptorID: descriptorID,
		SendPLI: func() { c.mu.Lock(); c.plis++; c.mu.Unlock() },
	})
	synctest.Wait()
	return c
}

// described is one packet.
func (c *scalable) described(template uint8, first, last, marker, key bool, size int) rtp.Packet {
	b := []byte{template, byte(c.number >> 8), byte(c.number)}
	if key {
		structure, _ := hex.DecodeString(c.mode.structure)
		b = append(b, structure[3:]...)
	}
	if first {
		b[0] |= 0x80
	}
	if last {
		b[0] |= 0x40
	}
	h := rtp.Header{Version: 2, Marker: marker, PayloadType: c.codec.PayloadType, SequenceNumber: c.sequence, Timestamp: c.timestamp, SSRC: 1}
	_ = h.SetExtension(descriptorID, b) // 1 to 255 bytes
	c.sequence++
	payload := make([]byte, size)
	for i := range payload {
		payload[i] = byte(rand.Uint32())
	}
	return rtp.Packet{Header: h, Payload: payload}
}

// unit makes the packets of a temporal unit: 1, 2 and 6 of its spatial layers.
func (c *scalable) unit(key bool) (packets []rtp.Packet) {
	templates := c.mode.turns[c.turn%len(c.mode.turns)]
	if key {
		templates, c.turn = c.mode.key, 0
	}
	c.turn++
	for spatial, template := range templates {
		n := []int{1, 2, 6}[spatial]
		for i := range n {
			last := i == n-1
			packets = append(packets, c.described(template, i == 0, last, last && spatial == len(templates)-1, key && spatial == 0 && i == 0, []int{600, 900, 900}[spatial]))
		}
		c.number++
	}
	c.timestamp += 3600
	return packets
}

// run sends 25 temporal units a second, and a keyframe when one was asked for.
func (c *scalable) run(d time.Duration) {
	asked := c.asked()
	for range d / (40 * time.Millisecond) {
		now := c.asked()
		for _, p := range c.unit(now != asked || c.turn == 0) {
			c.st.push(c.layer, p.Header, p.Payload)
		}
		asked = now
		c.st.pass(40 * time.Millisecond)
	}
}

func (st *stage) watcher(peer PeerID, id uint8, height int) *screenful {
	v := &screenful{}
	v.slot = st.room.AddSlot(SlotConfig{Peer: peer, Mid: "1", Kind: KindVideo, Writer: v, SSRC: 4711, RTXSSRC: 4712, Codecs: []Codec{av1}, DescriptorID: id})
	st.look(peer, height)
	v.slot.Ready()
	return v
}

func (st *stage) look(peer PeerID, height int) {
	st.room.SetView(peer, []Want{{Peer: "alice", Source: SourceCamera, Width: height * 16 / 9, Height: height}})
	synctest.Wait()
}

// receiver is what a browser makes of descriptors.
type receiver struct {
	reader  descriptor.Reader
	frames  map[uint16]bool // that are whole and can be decoded
	before  *rtp.Packet
	current descriptor.Frame
	highest uint16 // frame
}

// watched is what was decoded.
type watchedLayers struct {
	units             int
	spatial, temporal uint8 // the highest, of the last 10 units
	keyframes         int
}

// take checks that packets continue one stream, and that each temporal unit ends with its marker and can be decoded.
func (r *receiver) take(t *testing.T, packets []rtp.Packet) (w watchedLayers) {
	t.Helper()
	if r.frames == nil {
		r.frames = map[uint16]bool{}
	}
	var layers []descriptor.Layer
	for i := range packets {
		p := &packets[i]
		if b := r.before; b != nil {
			if p.SequenceNumber != b.SequenceNumber+1 || b.Marker == (p.Timestamp == b.Timestamp) {
				t.Fatalf("packet %d: number %d after %d, timestamp %d after %d, marker before %v", i, p.SequenceNumber, b.SequenceNumber, p.Timestamp, b.Timestamp, b.Marker)
			}
		}
		r.before = p
		before := r.current
		if err := r.reader.Read(p.GetExtension(receiverID), &r.current); err != nil || !r.current.Known {
			t.Fatalf("packet %d: %v, %+v", i, err, r.current)
		}
		f := &r.current
		if f.First {
			if len(r.frames) > 0 && int16(f.Number-r.highest) <= 0 {
				t.Fatalf("packet %d: frame %d after %d", i, f.Number, r.highest)
			}
			r.highest = f.Number
			for _, back := range f.References() {
				if !r.frames[f.Number-back] {
					t.Fatalf("packet %d: frame %d of S%dT%d needs %v, which was not sent", i, f.Number, f.Spatial, f.Temporal, f.References())
				}
			}
		} else if f.Number != before.Number {
			t.Fatalf("packet %d: frame %d is not whole", i, before.Number)
		}
		if f.Last {
			r.frames[f.Number] = true
			layers = append(layers, descriptor.Layer{Spatial: f.Spatial, Temporal: f.Temporal})
		}
		if f.Keyframe {
			w.keyframes++
		}
		if p.Marker {
			w.units++
		}
	}
	for _, l := range layers[max(0, len(layers)-10):] {
		w.spatial, w.temporal = max(w.spatial, l.Spatial), max(w.temporal, l.Temporal)
	}
	return w
}

// TestEachSubscriberHasItsSpatialLayer of one stream, whose payload is noise, and changes with the size that is shown.
func TestEachSubscriberHasItsSpatialLayer(t *testing.T) {
	onStage(t, Config{}, func(st *stage) {
		alice := st.scalable("alice", l3t3Key)
		heights := []int{135, 270, 540}
		var views []*screenful
		receivers := make([]receiver, 3)
		for i, height := range heights {
			views = append(views, st.watcher(PeerID(rune('b'+i)), receiverID, height))
		}
		for turn := range 4 {
			alice.run(2 * time.Second)
			for i, v := range views {
				if turn > 0 && i == 1 {
					continue
				}
				wanted := uint8((i + turn*turn) % 3)
				w := receivers[i].take(t, v.take())
				if w.spatial != wanted || w.temporal != 2 || w.units < 45 || w.keyframes > 3 {
					t.Errorf("turn %d, subscriber %d: %+v, want spatial layer %d", turn, i, w, wanted)
				}
			}
			for i := range views {
				if i != 1 {
					st.look(PeerID(rune('b'+i)), heights[(i+(turn+1)*(turn+1))%3])
				}
			}
		}
		if w := receivers[1].take(t, views[1].take()); w.spatial != 1 || w.units < 145 {
			t.Errorf("who changed nothing: %+v", w)
		}
		if asked := alice.asked(); asked > 8 {
			t.Errorf("asked for %d keyframes", asked)
		}
	})
}

// TestFramesBeforePixels: where the path gets narrow temporal layers go first, then spatial ones, and come back.
func TestFramesBeforePixels(t *testing.T) {
	for name, c := range map[string]struct {
		mode scalability
		want []descriptor.Layer // with ever less
	}{
		"L3T3_KEY": {l3t3Key, []descriptor.Layer{{Spatial: 2, Temporal: 2}, {Spatial: 2, Temporal: 1}, {Spatial: 1, Temporal: 2}, {Temporal: 2}, {Temporal: 1}, {}}},
		"L1T3":     {l1t3, []descriptor.Layer{{Temporal: 2}, {Temporal: 1}, {}}},
	} {
		t.Run(name, func(t *testing.T) {
			onStage(t, Config{}, func(st *stage) {
				alice := st.scalable("alice", c.mode)
				view := st.watcher("bob", receiverID, 540)
				var r receiver
				alice.run(3 * time.Second)
				look := func(budget uint64, want descriptor.Layer) {
					t.Helper()
					st.room.SetBudget("bob", budget)
					alice.run(4 * time.Second)
					if w := r.take(t, view.take()); w.spatial != want.Spatial || w.temporal != want.Temporal {
						t.Errorf("%d bit/s: %+v, want %+v", budget, w, want)
					}
				}
				var budgets []uint64
				for _, want := range c.want {
					target, _ := alice.layer.described.target(want.Spatial, want.Temporal)
					budgets = append(budgets, uint64(1.1*alice.layer.described.rates[target].bits))
				}
				for i, want := range c.want {
					look(budgets[i], want)
				}
				for i, want := range slices.Backward(c.want) {
					look(budgets[i]*6/5, want)
				}
			})
		})
	}
}

// TestWhoHasNoDescriptor is sent none, and the same layers.
func TestWhoHasNoDescriptor(t *testing.T) {
	onStage(t, Config{}, func(st *stage) {
		alice := st.scalable("alice", l3t3Key)
		view := st.watcher("bob", 0, 270)
		alice.run(2 * time.Second)
		packets := view.take()
		for i := 1; i < len(packets); i++ {
			if p, b := &packets[i], &packets[i-1]; p.Extension || p.SequenceNumber != b.SequenceNumber+1 || b.Marker == (p.Timestamp == b.Timestamp) {
				t.Fatalf("packet %d: %v after %v", i, p, b)
			}
		}
		if len(packets) < 95 || len(packets) > 105 {
			t.Errorf("%d packets of 50 units", len(packets))
		}
	})
}

// TestALostPacketOfALayer is sent again with the frame's number and marker that it had, after the slot has moved on.
func TestALostPacketOfALayer(t *testing.T) {
	onStage(t, Config{}, func(st *stage) {
		alice := st.scalable("alice", l3t3Key)
		view := st.watcher("bob", receiverID, 270)
		alice.run(time.Second)
		before := view.take()
		i := len(before) - 1
		for ; !before[i].Marker; i-- {
		}
		st.look("bob", 540)
		alice.run(time.Second)
		view.take()
		view.slot.NACK([]uint16{before[i].SequenceNumber})
		synctest.Wait()
		again := view.take()
		if len(again) != 1 || !again[0].Marker || !slices.Equal(again[0].GetExtension(receiverID), before[i].GetExtension(receiverID)) ||
			binary.BigEndian.Uint16(again[0].Payload) != before[i].SequenceNumber {
			t.Errorf("sent again: %v", again)
		}
	})
}

// TestWhatIsTargetedCanBeDecoded: whatever is wanted, lost and late, a frame is forwarded only after those that it needs, and each unit
// of which a frame was forwarded ends.
func TestWhatIsTargetedCanBeDecoded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		mode := rapid.SampledFrom([]scalability{l1t3, l3t3Key}).Draw(t, "mode")
		c := &scalable{mode: mode, codec: av1}
		var reader descriptor.Reader
		targets := layerfilter.NewTargets()
		forwarded := map[uint16]bool{}
		spatial, temporal := uint8(layerfilter.AllSpatial), uint8(layerfilter.AllTemporal)
		for unit := range rapid.IntRange(1, 60).Draw(t, "units") {
			key := unit == 0 || rapid.IntRange(0, 9).Draw(t, "key") == 0
			if rapid.IntRange(0, 3).Draw(t, "wish") == 0 {
				spatial, temporal = rapid.Uint8Range(0, 2).Draw(t, "spatial"), rapid.Uint8Range(0, 2).Draw(t, "temporal")
				targets.Cut = rapid.Bool().Draw(t, "cut")
			}
			for _, raw := range c.unit(key) {
				p := &Packet{described: true}
				p.header.Timestamp, p.header.Marker = raw.Timestamp, raw.Marker
				if err := reader.Read(raw.GetExtension(descriptorID), &p.frame); err != nil {
					t.Fatal(err)
				}
				out := !targets.Drops(&p.frame, p.header.Timestamp, p.arrived, true, spatial, temporal)
				if first, seen := forwarded[p.frame.Number]; seen && first != out {
					t.Fatalf("a part of frame %d", p.frame.Number)
				}
				forwarded[p.frame.Number] = out
				if !out {
					continue
				}
				for _, back := range p.frame.References() {
					if !forwarded[p.frame.Number-back] {
						t.Fatalf("frame %d of S%dT%d without %v", p.frame.Number, p.frame.Spatial, p.frame.Temporal, p.frame.References())
					}
				}
				if l := targets.Structure.Target(targets.Target); l.Temporal > temporal && !key && targets.Goal == targets.Target {
					t.Fatalf("T%d, wanted %d", l.Temporal, temporal)
				}
			}
			if key && spatial != layerfilter.AllSpatial && targets.Structure.Target(targets.Target).Spatial != min(spatial, uint8(len(mode.key)-1)) {
				t.Fatalf("at a keyframe target %d, wanted S%d", targets.Target, spatial)
			}
		}
	})
}

// TestDescribedPacketsAllocateNothing: as TestHotPathAllocatesNothing.
func TestDescribedPacketsAllocateNothing(t *testing.T) {
	room := NewRoom(Config{}, slog.New(slog.DiscardHandler))
	c := &scalable{mode: l3t3Key, codec: av1}
	c.layer = room.AddLayer(LayerConfig{Peer: "alice", Source: SourceCamera, Kind: KindVideo, Codec: av1, DescriptorID: descriptorID})
	w := &sink{}
	room.AddSlot(SlotConfig{Peer: "bob", Mid: "1", Kind: KindVideo, Writer: w, SSRC: 1, Codecs: []Codec{av1}, DescriptorID: receiverID}).Ready()
	for len(room.tasks) > 0 {
		room.handleTasks(<-room.tasks)
	}
	var units [][]byte
	for turn := range 5 {
		for _, p := range c.unit(turn == 0) {
			units = append(units, marshal(t, p.Header, p.Payload))
		}
	}
	push := func(raw []byte) {
		p := room.GetPacket()
		p.SetLength(copy(p.Buffer(), raw))
		c.layer.Push(p)
		room.handleBurst(<-room.packets)
	}
	next, sequence := 0, uint16(0)
	step := func() {
		raw := units[next]
		raw[2], raw[3] = byte(sequence>>8), byte(sequence)
		push(raw)
		sequence++
		if next++; next == len(units) {
			next = len(c.mode.key) // Once is enough of the keyframe.
		}
	}
	for range 2 * videoCachePackets {
		step()
	}
	before := w.packets
	if allocated := testing.AllocsPerRun(1000, step); allocated != 0 || w.packets-before < 50 {
		t.Errorf("%v allocations for each packet; %d written", allocated, w.packets-before)
	}
}
