package cluster

import (
	"fmt"
	"testing"

	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

// BenchmarkLoadReport is what every process does for each load report of a cluster of 1,000 media nodes and 100 signaling nodes, and for a
// view, of which there are ten a second at most.
func BenchmarkLoadReport(b *testing.B) {
	m := newMembers(Node{ID: "signaling-0", Boot: "1800000000000-00000000", Role: RoleSignaling}, quiet())
	var media Node
	for i := range 1100 {
		n := Node{ID: ring.NodeID(fmt.Sprintf("sfu-%d", i)), Boot: pin.BootID(fmt.Sprintf("1800000000000-%08x", i+1)), Role: RoleSFU, Control: "10.0.0.1:7000", Media: "10.0.0.1:7001"}
		if i >= 1000 {
			n.ID, n.Role = ring.NodeID(fmt.Sprintf("signaling-%d", i)), RoleSignaling
		} else {
			media = n
		}
		m.join(n)
	}
	m.setLoad(media, Load{Seq: 1})
	report := message{kind: kindLoad, from: media, load: Load{Seq: 1, EgressBitsPerSecond: 500_000_000, EgressPacketsPerSecond: 60_000, CeilingBitsPerSecond: 800_000_000, CeilingPacketsPerSecond: 100_000, Rooms: 1000, Peers: 10_000}}
	raw := report.encode()
	b.Run("read", func(b *testing.B) {
		b.ReportAllocs()
		b.ReportMetric(float64(len(raw)), "wire-B")
		for seq := uint64(2); b.Loop(); seq++ {
			got, err := parseMessage(raw)
			if err != nil {
				b.Fatal(err)
			}
			got.load.Seq = seq
			m.setLoad(got.from, got.load)
		}
	})
	b.Run("view", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if v := m.view(); len(v.Nodes) != 1000 {
				b.Fatalf("%d nodes", len(v.Nodes))
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(publishAfter)*100, "%-of-a-core")
	})
}
