package sfu

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/sfu/connection"
	"github.com/holdfast-rtc/holdfast/sfu/forward"
	"github.com/holdfast-rtc/holdfast/sfu/offer"
)

// plainOffer is the shortest offer that is answered.
const plainOffer = "v=0\r\no=- 42 2 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\na=group:BUNDLE 0 1\r\n" +
	"m=audio 9 UDP/TLS/RTP/SAVPF 111\r\nc=IN IP4 0.0.0.0\r\na=ice-ufrag:abcd\r\na=ice-pwd:abcdefghijklmnopqrstuvwx\r\n" +
	"a=fingerprint:sha-256 " + plainFingerprint + "\r\na=setup:actpass\r\na=mid:0\r\na=sendonly\r\na=rtcp-mux\r\na=rtpmap:111 opus/48000/2\r\n" +
	"m=video 9 UDP/TLS/RTP/SAVPF 96\r\nc=IN IP4 0.0.0.0\r\na=mid:1\r\na=recvonly\r\na=rtcp-mux\r\na=rtpmap:96 VP8/90000\r\n"

const plainFingerprint = "00:11:22:33:44:55:66:77:88:99:AA:BB:CC:DD:EE:FF:00:11:22:33:44:55:66:77:88:99:AA:BB:CC:DD:EE:FF"

// looseOwner owns a connection that no service knows of.
type looseOwner struct {
	connected chan<- struct{} // closed once it is connected, unless nil
}

func (looseOwner) Gone() bool       { return false }
func (looseOwner) PathChanged()     {}
func (looseOwner) SendersChanged()  {}
func (looseOwner) RestsChanged()    {}
func (looseOwner) Unreached()       {}
func (looseOwner) PreparedChanged() {}
func (looseOwner) Broke()           {}

func (o looseOwner) StateChanged(_ *connection.Connection, state control.TransportState) {
	if o.connected != nil && state == control.TransportState_TRANSPORT_STATE_CONNECTED {
		close(o.connected)
	}
}

// looseConfig is that of a connection in a room that no service knows of.
func (s *stage) looseConfig() connection.Config {
	batch := s.node.socket.NewBatch()
	return connection.Config{
		Room: s.looseRoom(batch), Batch: batch, Owner: looseOwner{}, Peer: "alice", CanPublish: true, CanSubscribe: true, Log: slog.New(slog.DiscardHandler),
	}
}

func (s *stage) looseRoom(batchers ...forward.Batcher) *forward.Room {
	room := forward.NewRoom(forward.Config{Batchers: batchers}, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(s.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- room.Run(ctx) }()
	s.t.Cleanup(func() { cancel(); <-ended })
	return room
}

// FuzzAnswer negotiates offers that a client made up: nothing may panic,
// and a connection must close after whatever it was told.
func FuzzAnswer(f *testing.F) {
	s := newStage(f, "one")
	s.attach("room", "alice", 1) // The node is running when somebody could attach.
	client := newMediaClient(f, 'a', true, 2, "q", "h")
	client.senders = nil
	f.Add(plainOffer)
	f.Add(client.offerMessage(nil).GetSdp())
	f.Add(strings.ReplaceAll(plainOffer, "a=recvonly", "a=inactive"))
	cfg := s.looseConfig()
	f.Fuzz(func(t *testing.T, text string) {
		o, err := offer.Read(text, offerLimits(s.node.cfg.Limits))
		if err != nil {
			return
		}
		c, err := connection.Open(s.node.transport, o, cfg)
		if err != nil {
			t.Fatal(err)
		}
		message := &control.Offer{Id: "1", Sdp: text, Senders: []*control.Sender{{Mid: "1", Rid: "q", Ssrc: 5, RtxSsrc: 6}}}
		for range 2 { // Again, as a renegotiation of whatever the first one left.
			if _, err := c.Answer(message, o); err != nil {
				t.Log(err)
			}
		}
		c.Close()
	})
}
