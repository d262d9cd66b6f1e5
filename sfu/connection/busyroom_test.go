package connection

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pion/rtcp"
	"github.com/pion/rtp"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/sfu/forward"
	"github.com/holdfast-rtc/holdfast/sfu/offer"
	"github.com/holdfast-rtc/holdfast/sfu/sources"
)

// busyRoom is a connection with a track and a slot, in a room whose loop begins only at Run.
type busyRoom struct {
	t    *testing.T
	room *forward.Room
	c    *Connection
	head string // an offer's m-lines before the slots
}

func newBusyRoom(t *testing.T) *busyRoom {
	t.Helper()
	b := &busyRoom{t: t, room: forward.NewRoom(forward.Config{}, slog.New(slog.DiscardHandler)), head: strings.Replace(publishing, "BUNDLE 0 1", "BUNDLE 0 1 2 3", 1)}
	var err error
	b.c, err = Open(newTransport(), b.read(slotLine("2", "recvonly")), configIn(b.room))
	if err != nil {
		t.Fatal(err)
	}
	b.answer(slotLine("2", "recvonly"))
	b.receive()
	for b.room.AddLayer(forward.LayerConfig{Peer: "bob"}) != nil { // until the queue is full
	}
	return b
}

func (b *busyRoom) read(slots string) *offer.Offer {
	b.t.Helper()
	return read(b.t, b.head+slots)
}

func (b *busyRoom) answer(slots string) {
	if _, err := b.c.Answer(&control.Offer{Id: "1", Sdp: b.head + slots}, b.read(slots)); err != nil {
		b.t.Error(err)
	}
}

// receive does what the socket's reader does.
func (b *busyRoom) receive() {
	header := rtp.Header{Version: 2, SSRC: 1, PayloadType: 96}
	packet, err := (&rtp.Packet{Header: header, Payload: make([]byte, 40)}).Marshal()
	if err != nil {
		b.t.Fatal(err)
	}
	control, err := rtcp.Marshal([]rtcp.Packet{&rtcp.PictureLossIndication{MediaSSRC: 7}})
	if err != nil {
		b.t.Fatal(err)
	}
	b.c.RTP(&header, packet, time.Now())
	b.c.RTCP(control, time.Now())
}

func held(mu *sync.Mutex) bool {
	if mu.TryLock() {
		mu.Unlock()
		return false
	}
	return true
}

// TestABusyRoomDoesNotHoldUpTheSocketsReader: what waits for a room with a full queue holds no lock that the reader of all rooms needs.
func TestABusyRoomDoesNotHoldUpTheSocketsReader(t *testing.T) {
	for what, act := range map[string]func(*busyRoom){
		"an offer adds a slot": func(b *busyRoom) { b.answer(slotLine("2", "recvonly") + slotLine("3", "recvonly")) },
		"an offer ends a slot": func(b *busyRoom) { b.answer(slotLine("2", "inactive")) },
		"an offer ends a track": func(b *busyRoom) {
			b.head = strings.Replace(b.head, "a=mid:0\r\na=sendonly", "a=mid:0\r\na=inactive", 1)
			b.answer(slotLine("2", "recvonly"))
		},
		"a moderator mutes":     func(b *busyRoom) { b.c.Silence(sources.Bit(forward.SourceCamera)) },
		"the connection closes": func(b *busyRoom) { b.c.Close() },
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBusyRoom(t)
				var acts, loop sync.WaitGroup
				done := make(chan struct{})
				acts.Go(func() { act(b); close(done) })
				synctest.Wait()
				select {
				case <-done:
					t.Error("the room was not waited for")
				default:
				}
				if held(&b.c.mu) || held(&b.c.uplink.mu) {
					t.Error("the reader waits for the room")
				} else {
					b.receive()
				}
				ctx, cancel := context.WithCancel(t.Context())
				acts.Go(b.c.Close)
				loop.Go(func() { _ = b.room.Run(ctx) }) // it returns nil
				acts.Wait()
				if states := b.room.States()["alice"]; len(states.Slots)+len(states.Layers) != 0 {
					t.Errorf("a closed connection leaves %+v", states)
				}
				cancel()
				loop.Wait()
			})
		})
	}
}
