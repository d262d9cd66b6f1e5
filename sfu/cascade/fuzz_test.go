package cascade

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/internal/panics"
	"github.com/holdfast-rtc/holdfast/sfu/egress"
	"github.com/holdfast-rtc/holdfast/sfu/forward"
	"github.com/holdfast-rtc/holdfast/sfu/transport"
)

// deaf is a media socket to which nothing comes.
type deaf struct{ closed chan struct{} }

func (d deaf) Readers() int { return 1 }

func (d deaf) Receive(int, func([]byte, egress.Address), func(egress.Address)) error {
	<-d.closed
	return nil
}

func (d deaf) Write(b []byte, _ egress.Address) (int, error) { return len(b), nil }

func (d deaf) Close() error { return nil }

// FuzzOtherNode: whatever the room's other node says of its layers, and reports of ours, harms nothing here.
func FuzzOtherNode(f *testing.F) {
	f.Add(uint32(7), "alice", int32(2), "video/VP8", uint32(96), uint32(360), uint64(500_000), []byte{0x81, 206, 0, 2, 0, 0, 0, 1, 0, 0, 0, 1})
	f.Add(uint32(7), "alice", int32(1), "audio/opus", uint32(111), uint32(0), uint64(0), []byte{0x81, 205, 0, 3, 0, 0, 0, 1, 0, 0, 0, 1, 0, 9, 0xff, 0xff})
	f.Add(uint32(0), "", int32(99), "", uint32(1<<31), uint32(1<<31), uint64(1<<63), []byte{0xff})
	media := transport.New(deaf{closed: make(chan struct{})}, panics.New(), slog.New(slog.DiscardHandler))
	f.Fuzz(func(t *testing.T, ssrc uint32, peer string, source int32, mime string, payloadType, height uint32, bits uint64, reports []byte) {
		ours, _ := transport.NewKeys()
		trunk := newTrunk()
		conn, err := media.Open(transport.Config{Handler: trunk, Owner: "the other node", Keys: ours, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		trunk.use(conn)
		room := forward.NewRoom(forward.Config{}, slog.New(slog.DiscardHandler))
		ctx, end := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { _ = room.Run(ctx) })
		defer running.Wait()
		defer end()
		l := NewLink(LinkConfig{Room: room, Trunk: trunk, Log: slog.New(slog.DiscardHandler)})
		own := room.AddLayer(forward.LayerConfig{Peer: "bob", Source: forward.SourceCamera, Kind: forward.KindVideo})
		l.Added(own)
		layer := &control.LinkLayer{
			Ssrc: ssrc, Peer: peer, Source: control.Source(source), MimeType: mime, PayloadType: payloadType, RedPayloadType: payloadType, ClockRate: height,
			AudioLevelId: payloadType, DescriptorId: height, PassedIds: []uint32{payloadType, height, ssrc, 1},
		}
		for range 2 {
			l.Take(&control.LinkMessage{Message: &control.LinkMessage_Layers{Layers: &control.LinkLayers{Added: []*control.LinkLayer{layer, nil}}}})
			l.Take(&control.LinkMessage{Message: &control.LinkMessage_States{States: &control.LinkStates{States: []*control.LinkState{
				{Ssrc: ssrc, Alive: true, Height: height, BitsPerSecond: bits, Speaks: bits%2 == 0}, nil,
			}}}})
			l.Take(&control.LinkMessage{Message: &control.LinkMessage_Wants{Wants: &control.LinkWants{Wanted: []uint32{ssrc, 1}, Unwanted: []uint32{ssrc, 1}}}})
			l.Take(&control.LinkMessage{})
			l.handle()
			trunk.RTCP(reports, time.Now())
		}
		l.Take(&control.LinkMessage{Message: &control.LinkMessage_Layers{Layers: &control.LinkLayers{Ended: []uint32{ssrc, ssrc + 1}}}})
		l.handle()
		if len(l.inlets)+len(l.waiting) != 0 {
			t.Errorf("%d layers are left", len(l.inlets)+len(l.waiting))
		}
		l.end()
	})
}
