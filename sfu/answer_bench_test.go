package sfu

import (
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/sfu/connection"
	"github.com/holdfast-rtc/holdfast/sfu/offer"
)

// BenchmarkAnswer is what one client's move costs the new node before it can
// answer: a fresh connection with a certificate, and one negotiation of a microphone, a
// camera and six slots of each kind.
func BenchmarkAnswer(b *testing.B) {
	s := newStage(b, "one")
	s.attach("room", "alice", 1) // The node is running when somebody could attach.
	client := newMediaClient(b, 'a', true, 6)
	message := client.offerMessage(nil)
	cfg := s.looseConfig()
	b.ReportAllocs()
	var cpu time.Duration
	for b.Loop() {
		begun := cpuTime(b)
		o, err := offer.Read(message.GetSdp(), offerLimits(s.node.cfg.Limits))
		if err != nil {
			b.Fatal(err)
		}
		c, err := connection.Open(s.node.transport, o, cfg)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := c.Answer(message, o); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		cpu += cpuTime(b) - begun
		c.Close()
		b.StartTimer()
	}
	b.ReportMetric(float64(cpu.Microseconds())/float64(b.N), "cpu-us/op")
}
