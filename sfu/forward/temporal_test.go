package forward

import (
	"slices"
	"testing"
	"time"

	"github.com/pion/rtp"
)

// layered is a camera whose pictures are in three temporal layers, as libvpx makes them: 0 2 1 2, of which the last needs the third.
type layered struct {
	*camera

	frames int
}

func (c *layered) temporal() (layer uint8, synced bool) {
	at := c.frames % 4
	return []uint8{0, 2, 1, 2}[at], at == 1 || at == 2
}

// packets makes the packets of the next picture.
func (c *layered) packets(n int) (made []rtp.Packet) {
	c.mu.Lock()
	keyframe := c.plis > 0 || c.frames == 0
	c.plis = 0
	c.mu.Unlock()
	if keyframe {
		c.frames = 0
	}
	layer, synced := c.temporal()
	if layer == 0 {
		c.tl0++
	}
	for i := range n {
		plain := vp8Payload(keyframe, i == 0, c.pictureID, c.tl0, c.height, byte(c.sequence), 1000)
		bits := layer << 6
		if synced {
			bits |= 0x20
		}
		payload := slices.Insert(slices.Clone(plain), 5, bits)
		payload[1] |= 0x20
		made = append(made, rtp.Packet{Header: rtp.Header{
			Version: 2, Marker: i == n-1, PayloadType: vp8.PayloadType, SequenceNumber: c.sequence, Timestamp: c.timestamp, SSRC: 1,
		}, Payload: payload})
		c.sequence++
	}
	c.frames++
	c.pictureID++
	c.timestamp += 2970
	return made
}

func (c *layered) push(packets ...rtp.Packet) {
	for _, p := range packets {
		c.st.push(c.layer, p.Header, p.Payload)
	}
}

// layeredSimulcast publishes a camera in three layers of three temporal layers each.
func (st *stage) layeredSimulcast(peer PeerID) []*layered {
	var all []*layered
	for i, rid := range []string{"q", "h", "f"} {
		all = append(all, &layered{camera: st.camera(peer, rid, 180<<i)})
	}
	return all
}

// runLayered sends 25 pictures a second: 213, 638 and 2128 kbit/s with all headers, half of it in the highest temporal layer.
func (st *stage) runLayered(all []*layered, d time.Duration) {
	for range d / (40 * time.Millisecond) {
		for i, c := range all {
			c.push(c.packets([]int{1, 3, 10}[i])...)
		}
		st.pass(40 * time.Millisecond)
	}
}

// seen is what a viewer decodes.
type seen struct {
	lines    int // of the last keyframe, 0: none came
	pictures int
	highest  uint8 // temporal layer
}

// decode checks that packets form one stream that can be decoded: no number and no picture is missing, and no picture is shown
// without those that it needs.
func decode(t *testing.T, packets []rtp.Packet) seen {
	t.Helper()
	var s seen
	for i := range packets {
		p := parseVP8(packets[i].Payload)
		if p.Height > 0 {
			s.lines = p.Height
		}
		s.highest = max(s.highest, p.Temporal)
		if packets[i].Marker {
			s.pictures++
		}
		if i == 0 {
			continue
		}
		before := &packets[i-1]
		q := parseVP8(before.Payload)
		if packets[i].SequenceNumber != before.SequenceNumber+1 {
			t.Fatalf("packet %d: number %d after %d", i, packets[i].SequenceNumber, before.SequenceNumber)
		}
		if packets[i].Timestamp == before.Timestamp {
			if p.PictureID != q.PictureID {
				t.Fatalf("packet %d: picture %d and %d in one", i, q.PictureID, p.PictureID)
			}
			continue
		}
		if (p.PictureID-q.PictureID)&0x7FFF != 1 {
			t.Fatalf("packet %d: picture %d after %d", i, p.PictureID, q.PictureID)
		}
		if base := p.Temporal == 0; (p.TL0 != q.TL0) != base {
			t.Fatalf("packet %d: base picture %d after %d, temporal layer %d", i, p.TL0, q.TL0, p.Temporal)
		}
		if p.Temporal == 2 && !p.Synced && q.Temporal != 1 {
			t.Fatalf("packet %d: it needs a picture that was left out", i)
		}
	}
	return s
}

// TestTemporalLayersGoFirst: as the path gets narrower half of the pictures are left out before each step to a smaller one, and on the
// lowest layer half of the rest before it is paused. On the way back none needs a keyframe that only adds pictures.
func TestTemporalLayersGoFirst(t *testing.T) {
	onStage(t, Config{}, func(st *stage) {
		alice := st.layeredSimulcast("alice")
		bob := st.slot("bob", "1", KindVideo)
		bob.slot.Ready()
		st.room.SetView("bob", []Want{{Peer: "alice", Source: SourceCamera, Width: 1280, Height: 720}})
		st.runLayered(alice, 4*time.Second)
		if got := decode(t, bob.take()); got.lines != 720 || got.highest != 2 {
			t.Fatalf("decoded %+v of a wide path", got)
		}
		for _, c := range []struct {
			budget uint64
			want   seen // lines 0: no keyframe came
		}{
			{1_500_000, seen{lines: 0, pictures: 50, highest: 1}}, // 720 lines, half of the pictures
			{900_000, seen{lines: 360, pictures: 100, highest: 2}},
			{500_000, seen{lines: 0, pictures: 50, highest: 1}},
			{250_000, seen{lines: 180, pictures: 100, highest: 2}},
			{150_000, seen{lines: 0, pictures: 50, highest: 1}},
			{70_000, seen{lines: 0, pictures: 25, highest: 0}},
			{30_000, seen{}}, // paused
			{65_000, seen{lines: 180, pictures: 25, highest: 0}},
			{150_000, seen{lines: 0, pictures: 50, highest: 1}},
			{270_000, seen{lines: 0, pictures: 100, highest: 2}},
			{900_000, seen{lines: 360, pictures: 100, highest: 2}},
		} {
			st.room.SetBudget("bob", c.budget)
			st.runLayered(alice, 4*time.Second)
			moved := decode(t, bob.take())
			st.runLayered(alice, 4*time.Second)
			steady := decode(t, bob.take())
			if moved.lines != c.want.lines || steady.highest != c.want.highest || (steady.pictures-c.want.pictures) > 2 || c.want.pictures-steady.pictures > 2 {
				t.Errorf("budget %d: a keyframe of %d lines, then %+v, want %+v", c.budget, moved.lines, steady, c.want)
			}
		}
		st.room.SetBudget("bob", 0)
		st.runLayered(alice, 2*time.Second)
		bob.take()
		st.runLayered(alice, 2*time.Second)
		if got := decode(t, bob.take()); got.highest != 2 || got.pictures < 48 {
			t.Errorf("without a limit %+v is decoded", got)
		}
	})
}

// TestALateDroppedPacketLeavesNoHole: what comes late of a picture that is left out is padding, so that nobody asks for it.
func TestALateDroppedPacketLeavesNoHole(t *testing.T) {
	onStage(t, Config{}, func(st *stage) {
		alice := &layered{camera: st.camera("alice", "", 360)}
		bob := st.slot("bob", "1", KindVideo)
		bob.slot.Ready()
		st.runLayered([]*layered{alice}, 4*time.Second)
		st.room.SetBudget("bob", 160_000)
		st.runLayered([]*layered{alice}, 4*time.Second)
		if got := decode(t, bob.take()); got.pictures < 100 {
			t.Fatalf("decoded %+v", got)
		}
		for alice.frames%4 != 1 {
			alice.push(alice.packets(1)...)
		}
		st.pass(100 * time.Millisecond)
		before := bob.take()
		late := alice.packets(3)
		alice.push(late[0], late[2]) // left out
		alice.push(alice.packets(1)...)
		st.pass(100 * time.Millisecond)
		alice.push(late[1])
		st.pass(100 * time.Millisecond)
		got := bob.take()
		if len(got) != 2 {
			t.Fatalf("%d packets, want the next picture and padding", len(got))
		}
		slices.SortFunc(got, func(a, b rtp.Packet) int { return int(int16(a.SequenceNumber - b.SequenceNumber)) })
		if n := before[len(before)-1].SequenceNumber; got[0].SequenceNumber != n+1 || got[1].SequenceNumber != n+2 {
			t.Errorf("numbers %d and %d after %d", got[0].SequenceNumber, got[1].SequenceNumber, n)
		}
		if !got[0].Padding || len(got[0].Payload) != 0 || got[0].Marker {
			t.Errorf("what came late went out as %v", got[0])
		}
		bob.slot.NACK([]uint16{got[0].SequenceNumber})
		st.pass(100 * time.Millisecond)
		if again := bob.take(); len(again) != 0 {
			t.Errorf("padding was sent again: %v", again)
		}
	})
}
