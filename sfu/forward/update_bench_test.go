package forward

import (
	"fmt"
	"log/slog"
	"syscall"
	"testing"
	"time"
)

// crowd is a room in which everybody publishes sound and three layers of a camera and has the page's slots, on the test's own
// goroutine in the loop's place.
type crowd struct {
	room  *Room
	peers []PeerID
	now   time.Time
	turn  int
}

// newCrowd has views if everybody names sixteen others whom the page shows.
func newCrowd(tb testing.TB, people, sounds, pictures int, views bool) *crowd {
	tb.Helper()
	c := &crowd{room: NewRoom(Config{OnSlots: func(PeerID) {}}, slog.New(slog.DiscardHandler)), now: time.Now()}
	for i := range people {
		c.peers = append(c.peers, PeerID(fmt.Sprintf("a3f1c09e-%04d", i)))
	}
	for i, peer := range c.peers {
		c.room.AddLayer(LayerConfig{Peer: peer, Source: SourceMicrophone, Kind: KindAudio, Codec: opus, AudioLevelExtensionID: levelID})
		for _, rid := range []string{"q", "h", "f"} {
			c.room.AddLayer(LayerConfig{Peer: peer, Source: SourceCamera, Kind: KindVideo, RID: rid, Codec: vp8})
		}
		for n := range sounds + pictures {
			cfg := SlotConfig{Peer: peer, Mid: fmt.Sprint(n), Kind: KindAudio, Writer: &sink{}, SSRC: 1, Codecs: []Codec{opus}}
			if n >= sounds {
				cfg.Kind, cfg.Codecs = KindVideo, []Codec{vp8}
			}
			c.room.AddSlot(cfg).Ready()
		}
		if views {
			var wants []Want
			for n := range pictures {
				wants = append(wants, Want{Peer: c.peers[(i+1+n)%people], Source: SourceCamera, Width: 320, Height: 180})
			}
			c.room.SetView(peer, wants)
		}
		c.drain()
	}
	c.room.updateSubscribers(c.now)
	for range sounds + 1 {
		c.speak()
	}
	return c
}

// drain does what is to be done, without assigning slots.
func (c *crowd) drain() {
	for len(c.room.tasks) > 0 {
		c.room.runTask(<-c.room.tasks)
	}
}

// mute turns the next person's camera off, or on again.
func (c *crowd) mute() {
	p := c.room.members.publication(trackKey{peer: c.peers[c.turn], source: SourceCamera})
	c.turn = (c.turn + 7) % len(c.peers)
	p.muted = !p.muted
	c.room.changed.muted = append(c.room.changed.muted, p)
	c.room.updateSubscribers(c.now)
}

// speak has the next person speak, who is in no slot, and the one before fall silent.
func (c *crowd) speak() {
	c.now = c.now.Add(speakersInterval)
	for i, peer := range c.peers {
		v := c.room.speakers.voice(peer)
		v.speaking = i == c.turn
		if v.speaking {
			v.lastSpoke = c.now
		}
	}
	c.turn = (c.turn + 7) % len(c.peers)
	c.room.changed.speakers = true
	c.room.updateSubscribers(c.now)
}

// works is what holds up the packets of a room: another speaker whom nobody has in a slot, the same speakers at another level, the
// look at all layers, a camera that is turned off or on, and the assignment of all slots.
func (c *crowd) works() map[string]func() {
	return map[string]func(){
		"speaker": c.speak,
		"level":   func() { c.room.changed.speakers = true; c.room.updateSubscribers(c.now) },
		"look":    func() { c.room.changed.layers = true; c.room.updateSubscribers(c.now) },
		"mute":    c.mute,
		"anew":    func() { c.room.changed.tables = true; c.room.updateSubscribers(c.now) },
	}
}

// BenchmarkArrange is for rooms of 100, 300 and 1,000.
func BenchmarkArrange(b *testing.B) {
	for _, people := range []int{100, 300, 1000} {
		for _, views := range []bool{true, false} {
			c := newCrowd(b, people, 6, 16, views)
			for name, work := range c.works() {
				b.Run(fmt.Sprintf("%s/people=%d/views=%v", name, people, views), func(b *testing.B) {
					b.ReportAllocs()
					cpu := cpuTime(b)
					for b.Loop() {
						work()
					}
					b.ReportMetric(float64((cpuTime(b)-cpu).Nanoseconds())/float64(b.N), "cpu-ns/op")
				})
			}
		}
	}
}

// cpuTime is what the process has used so far.
func cpuTime(b *testing.B) time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
