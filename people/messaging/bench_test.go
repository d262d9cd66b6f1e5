package messaging

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

// direct hands frames over in the order of their sending.
type direct struct {
	nodes map[Peer]*Node
	queue []func()
}

type directFrom struct {
	net  *direct
	from Peer
}

func (d directFrom) Send(to Peer, f Frame) {
	d.net.queue = append(d.net.queue, func() { d.net.nodes[to].Handle(d.from, f) })
}

func (d directFrom) Ask(UserID) {}

func (d *direct) run() {
	for len(d.queue) > 0 {
		next := d.queue
		d.queue = nil
		for _, do := range next {
			do()
		}
	}
}

func (d *direct) add(i int) Peer {
	peer := Peer{ring.NodeID(fmt.Sprint("node-", i)), pin.BootID(fmt.Sprint("boot-", i))}
	d.nodes[peer] = New(peer, DefaultConfig(), directFrom{d, peer}, directFrom{d, peer})
	return peer
}

// BenchmarkAMillionRegistrations fills one directory, and moves its share to a fourth node.
func BenchmarkAMillionRegistrations(b *testing.B) {
	const users = 1_000_000
	keys := make([]Key, users)
	for i := range keys {
		keys[i] = KeyOf(UserID(fmt.Sprint("user-", i)))
	}
	holder := Peer{ID: "holder"}
	b.Run("bytes", func(b *testing.B) {
		for b.Loop() {
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			t := newTable()
			for _, key := range keys {
				t.add(key, holder)
			}
			runtime.GC()
			runtime.ReadMemStats(&after)
			b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/users, "B/registration")
			runtime.KeepAlive(t)
		}
	})
	b.Run("move", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			d := &direct{nodes: map[Peer]*Node{}}
			peers := []Peer{d.add(1), d.add(2), d.add(3)}
			for _, peer := range peers {
				d.nodes[peer].SetPeers(peers)
			}
			d.run()
			for i := range users {
				d.nodes[peers[0]].Open(&Client{User: UserID(fmt.Sprint("user-", i))})
			}
			d.run()
			peers = append(peers, d.add(4))
			before := d.nodes[peers[0]].Counters().Moved
			b.StartTimer()
			for _, peer := range peers {
				d.nodes[peer].SetPeers(peers)
			}
			d.run()
			b.StopTimer()
			moved := d.nodes[peers[0]].Counters().Moved - before
			if got := d.nodes[peers[3]].Counters().Registered; got != moved {
				b.Fatalf("%d moved, the new directory knows %d", moved, got)
			}
			b.ReportMetric(100*float64(moved)/users, "%moved")
			b.StartTimer()
		}
	})
}
