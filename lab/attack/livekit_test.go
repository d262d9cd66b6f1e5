//go:build linux

package attack

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"
	"google.golang.org/protobuf/proto"

	"github.com/holdfast-rtc/holdfast/internal/testkit"
	"github.com/holdfast-rtc/holdfast/signaling/livekit/livekitpb"
)

// rtc is the address for a client of LiveKit. Without a request it is one with two connections.
func (s *stage) rtc(identity, request string) string {
	query := url.Values{"access_token": {s.token("room-of-"+identity, identity)}}
	if request != "" {
		query.Set("join_request", request)
	}
	return "http://" + s.address("signaling-1", "http") + "/rtc?" + query.Encode()
}

// bomb is a join request that has so many bytes once it is decompressed.
func (s *stage) bomb(size int) string {
	var zipped bytes.Buffer
	w, _ := gzip.NewWriterLevel(&zipped, gzip.BestCompression)
	_, _ = io.CopyN(w, zeros{}, int64(size))
	_ = w.Close()
	wrapped, err := proto.Marshal(&livekitpb.WrappedJoinRequest{Compression: livekitpb.WrappedJoinRequest_GZIP, JoinRequest: zipped.Bytes()})
	if err != nil {
		s.t.Fatal(err)
	}
	return base64.URLEncoding.EncodeToString(wrapped)
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

// bombs sends join requests that grow: each is refused once it has 256 KiB, and one that does not fit into the header before.
func bombs(s *stage) {
	for _, sent := range []struct{ size, status int }{{10 << 20, http.StatusBadRequest}, {100 << 20, http.StatusRequestHeaderFieldsTooLarge}} {
		address := s.rtc("bomber", s.bomb(sent.size))
		var bombing sync.WaitGroup
		for range 8 {
			bombing.Go(func() {
				for range 25 {
					answer, err := http.Get(address)
					if err != nil {
						s.t.Error(err)
						return
					}
					_ = answer.Body.Close()
					if answer.StatusCode != sent.status {
						s.t.Errorf("a request that becomes %d MiB is answered %d, want %d", sent.size>>20, answer.StatusCode, sent.status)
					}
				}
			})
		}
		bombing.Wait()
	}
}

// framesOfLiveKit are the storms of somebody whose client of LiveKit got in. Short frames end the socket.
func framesOfLiveKit(s *stage) {
	frame := func(request *livekitpb.SignalRequest) []byte {
		b, err := proto.Marshal(request)
		if err != nil {
			s.t.Fatal(err)
		}
		return b
	}
	offer := func(sdp string) []byte {
		return frame(&livekitpb.SignalRequest{Message: &livekitpb.SignalRequest_Offer{Offer: &livekitpb.SessionDescription{Type: "offer", Sdp: sdp}}})
	}
	// Of long frames the socket reads so many bytes a second that it is not flooded.
	slow := map[string]bool{"offers that cost": true, "answers": true, "many subscriptions": true}
	var storming sync.WaitGroup
	defer storming.Wait()
	many := &livekitpb.UpdateSubscription{TrackSids: make([]string, 20_000)}
	for name, storm := range map[string][]byte{
		"garbage":            bytes.Repeat([]byte{0xff}, 4<<10),
		"too long":           offer(strings.Repeat("x", 1<<20)),
		"no offers":          offer("v=0\r\nnothing"),
		"offers that cost":   offer(costlyOffer()),
		"many subscriptions": frame(&livekitpb.SignalRequest{Message: &livekitpb.SignalRequest_Subscription{Subscription: many}}),
		"pings":              frame(&livekitpb.SignalRequest{Message: &livekitpb.SignalRequest_PingReq{PingReq: &livekitpb.Ping{}}}),
		"answers":            frame(&livekitpb.SignalRequest{Message: &livekitpb.SignalRequest_Answer{Answer: &livekitpb.SessionDescription{Sdp: costlyOffer()}}}),
	} {
		storming.Go(func() {
			lasts := patience
			if slow[name] {
				lasts = 5 * time.Second
			}
			if err := s.storm(name, storm, lasts); err != nil && !slow[name] {
				s.t.Errorf("%s: %v", name, err)
			}
		})
	}
}

var errNotCut = errors.New("the socket is not cut")

// storm joins, and sends a frame again and again, until the socket is closed or it has lasted.
func (s *stage) storm(name string, frame []byte, lasts time.Duration) error {
	ctx, cancel := context.WithTimeout(s.t.Context(), patience+lasts)
	defer cancel()
	var conn *websocket.Conn
	testkit.Within(s.t, patience, "a client of LiveKit connects", func() (err error) {
		conn, _, err = websocket.Dial(ctx, s.rtc("stormer of "+name, ""), nil)
		return err
	})
	defer func() { _ = conn.CloseNow() }()
	conn.SetReadLimit(1 << 20)
	if _, _, err := conn.Read(ctx); err != nil {
		return err
	}
	go func() {
		for {
			if _, _, err := conn.Read(ctx); err != nil {
				return
			}
		}
	}()
	write := func(frame []byte) error {
		ctx, cancel := context.WithTimeout(ctx, lasts)
		defer cancel()
		return conn.Write(ctx, websocket.MessageBinary, frame)
	}
	for end := time.Now().Add(lasts); time.Now().Before(end); {
		if write(frame) != nil {
			return nil
		}
	}
	return errNotCut
}
