package sfu

import (
	"context"
	"testing"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/sfu/forward"
)

// BenchmarkAnswer is what one client's move costs the new node before it can
// answer: a fresh connection with a certificate, and one negotiation of a microphone, a
// camera and six slots of each kind.
func BenchmarkAnswer(b *testing.B) {
	s := newStage(b, "one")
	// The node is running when somebody could attach.
	s.attach("room", "alice", 1)
	client := newMediaClient(b, 'a', true, 6)
	offer := client.offerMessage(nil)
	shape, err := readOffer(offer.GetSdp(), s.node.cfg.Limits)
	if err != nil {
		b.Fatal(err)
	}
	room := forward.NewRoom(forward.Config{}, testLog(b))
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	go func() { ended <- room.Run(ctx) }()
	defer func() { cancel(); <-ended }()
	s.node.mu.Lock()
	transport := s.node.transport
	s.node.mu.Unlock()
	b.ReportAllocs()
	for b.Loop() {
		c, err := transport.connect(connectionConfig{
			room: room, peer: "alice", canPublish: true, canSubscribe: true,
			onState: func(*connection, control.TransportState) {}, log: testLog(b),
		})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := c.answer(b.Context(), offer, shape); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		c.close()
		b.StartTimer()
	}
}
