package sfu

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/sfu/forward"
)

// FuzzAnswer lets Pion negotiate offers that a client made up: nothing may panic,
// and a connection must close after whatever it was told.
func FuzzAnswer(f *testing.F) {
	s := newStage(f, "one")
	s.attach("room", "alice", 1) // The node is running when somebody could attach.
	client := newMediaClient(f, 'a', true, 2, "q", "h")
	client.senders = nil
	f.Add(plainOffer)
	f.Add(client.offerMessage(nil).GetSdp())
	f.Add(strings.ReplaceAll(plainOffer, "a=recvonly", "a=inactive"))
	s.node.mu.Lock()
	transport := s.node.transport
	s.node.mu.Unlock()
	log := slog.New(slog.DiscardHandler)
	room := forward.NewRoom(forward.Config{}, log)
	ctx, cancel := context.WithCancel(f.Context())
	ended := make(chan error, 1)
	go func() { ended <- room.Run(ctx) }()
	f.Cleanup(func() { cancel(); <-ended })
	f.Fuzz(func(t *testing.T, text string) {
		shape, err := readOffer(text, s.node.cfg.Limits)
		if err != nil {
			return
		}
		c, err := transport.connect(connectionConfig{
			room: room, peer: "alice", canPublish: true, canSubscribe: true,
			onState: func(*connection, control.TransportState) {}, log: log,
		})
		if err != nil {
			t.Fatal(err)
		}
		offer := &control.Offer{Id: "1", Sdp: text, Senders: []*control.Sender{{Mid: "1", Rid: "q", Ssrc: 5, RtxSsrc: 6}}}
		for range 2 { // Again, as a renegotiation of whatever the first one left.
			if _, err := c.answer(t.Context(), offer, shape); err != nil {
				t.Log(err)
			}
		}
		c.close()
	})
}
