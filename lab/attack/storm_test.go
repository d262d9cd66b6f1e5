//go:build linux

package attack

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// spare is by how much a process may differ from itself: a new connection between nodes, a timer, packets under way. A
// round has more than 60 sessions, so one leaked goroutine or socket for each is 60, and with it 600 KiB. Resident memory depends on the
// highest moment so far; it is to see what is in no heap.
var spare = map[string]int{"KiB of heap": 400, "KiB resident": 8 << 10, "goroutines": 12, "sockets": 8}

// TestAStormLeavesNothing does what anybody may send, twice. The first round makes what is kept, such as pools and
// connections between nodes; what the second adds has leaked. How each is answered is tested where it is answered.
func TestAStormLeavesNothing(t *testing.T) {
	t.Parallel()                          // most of it is waiting
	s := newStage(t, "HOLDFAST_GRACE=6s") // A round ends when the last abandoned place is given up.
	var first map[string]int
	for round := range 2 {
		t.Run(fmt.Sprint("round ", round+1), func(t *testing.T) {
			on := *s
			on.t = t
			on.each("", 0, []attack{
				{"first words that are none", firstWords},
				{"sessions that go wrong", wrongSessions},
				{"offers without measure", offersWithoutMeasure},
				{"frames that never become messages", endlessFrames},
				{"clients that never read", neverRead},
				{"sockets behind the balancer that never say join", idleSockets},
				{"nonsense on the REST API", badRequests},
				{"noise on the media port", mediaNoise},
				{"checks from thousands of ports", checksFromEverywhere},
				{"noise on the control port", controlNoise},
				{"noise on the gossip ports", gossipNoise},
			})
		})
		s.eventually("the places are given up", func() error {
			if rooms := s.rooms(); len(rooms) != 1 || len(rooms[0].Peers) != len(s.call) {
				return fmt.Errorf("there are %+v", rooms)
			}
			return nil
		})
		if round == 0 {
			first = s.footprint()
		}
	}
	s.eventually("nothing is left of the second round", func() (left error) {
		for what, now := range s.footprint() {
			_, unit, _ := strings.Cut(what, ": ")
			if was := first[what]; now > was+spare[unit] {
				left = errors.Join(left, fmt.Errorf("%s: %d, after the first round %d", what, now, was))
			}
		}
		return left
	})
	t.Logf("after the first round: %v", first)
}

func firstWords(s *stage) {
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	for _, text := range []string{
		`{"type":"join"`, `{"type":"join"}`, `{"type":"join","token":"` + strings.Repeat("x", 30_000) + `"}`,
		`{"type":"resume","resume":"hfr2.e30.e30","attempt":2}`, `{"type":"offer","id":"1","sdp":"v=0","fresh":true,"senders":[]}`,
	} {
		conn, err := socket(ctx, s.url, http.DefaultClient)
		if err == nil {
			err = conn.Write(ctx, websocket.MessageText, []byte(text))
		}
		if err != nil {
			s.t.Fatal(err)
		}
		last, err := lastWord(ctx, conn)
		if fault, ok := last.(*wire.Error); !ok || !strings.HasSuffix(fault.Message, ".") || websocket.CloseStatus(err) != websocket.StatusPolicyViolation {
			s.t.Errorf("%.60s is answered %+v, %v", text, last, err)
		}
	}
}

// wrongSessions end by what is said in them.
func wrongSessions(s *stage) {
	for i, wrong := range []struct {
		times int
		text  string
		want  websocket.StatusCode
	}{
		{120, `{"type":"mute","sou`, websocket.StatusPolicyViolation},
		{1, `{"type":"offer","id":"1","sdp":"` + strings.Repeat("x", 1<<20) + `"}`, websocket.StatusMessageTooBig},
		{20_000, `{"type":"mute","source":"camera","muted":true}`, websocket.StatusPolicyViolation},
	} {
		in := s.intrude(fmt.Sprint("wrong-", i))
		var writing sync.WaitGroup
		writing.Go(func() {
			for range wrong.times {
				if in.socket.Write(s.t.Context(), websocket.MessageText, []byte(wrong.text)) != nil {
					return
				}
			}
		})
		ctx, cancel := context.WithTimeout(s.t.Context(), patience)
		if _, err := lastWord(ctx, in.socket); websocket.CloseStatus(err) != wrong.want {
			s.t.Errorf("%d times %.60s ends with %v, want %v", wrong.times, wrong.text, err, wrong.want)
		}
		cancel()
		writing.Wait()
	}
}

// offersWithoutMeasure are none, or would each be a new connection.
func offersWithoutMeasure(s *stage) {
	in := s.intrude("bargainer")
	good, rejected := costlessOffer(""), 0
	for _, offer := range append(slices.Repeat([]string{good}, 30), "hello", "v=0\r\n", strings.ReplaceAll(good, "a=fingerprint", "a=x")) {
		switch answer, err := in.offer(offer); {
		case err != nil:
			s.t.Fatal(err)
		case answer == "":
			rejected++
		}
	}
	if rejected < 10 {
		s.t.Errorf("%d offers were rejected", rejected)
	}
}

// endlessFrames sends empty frames that never end a message, and pings, for three seconds.
func endlessFrames(s *stage) {
	var sending sync.WaitGroup
	defer sending.Wait()
	for i := range 6 {
		conn := s.upgrade(s.address("signaling-1", "http"))
		frames := append([]byte{0x01, 0x80, 0, 0, 0, 0}, bytes.Repeat([]byte{0x00, 0x80, 0, 0, 0, 0}, 10_000)...)
		if i%2 == 0 {
			frames = bytes.Repeat([]byte{0x89, 0x80, 0, 0, 0, 0}, 10_000)
		}
		_ = conn.SetDeadline(time.Now().Add(3 * time.Second))
		sending.Go(func() { _, _ = io.Copy(io.Discard, conn) })
		sending.Go(func() {
			for {
				if _, err := conn.Write(frames); err != nil {
					return // It was held back, or cut off: both are right.
				}
			}
		})
	}
}

// neverRead holds sockets in the call's room, and reads nothing.
func neverRead(s *stage) {
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	for i := range 10 {
		conn, answer, err := s.joinOnceServed(ctx, s.token(bystanderRoom, fmt.Sprint("deaf-", i)), storeIsBusy)
		if err != nil {
			s.t.Fatal(err)
		}
		s.t.Cleanup(func() { _ = conn.CloseNow() })
		if _, ok := answer.(*wire.Joined); !ok {
			s.t.Fatalf("who never reads is told %+v", answer)
		}
		for range 100 {
			if err := write(ctx, conn, &wire.Ping{T: 1}); err != nil {
				s.t.Fatal(err)
			}
		}
	}
}

// idleSockets are more than may wait of one address, which the balancer tells. Each may wait 10 s; the first has to go
// long before.
func idleSockets(s *stage) {
	front := s.address("front", "http")
	first := s.upgrade(front)
	began := time.Now()
	for range 1500 {
		s.upgrade(front)
	}
	crowded := time.Since(began)
	_ = first.SetReadDeadline(time.Now().Add(patience))
	said, err := io.ReadAll(first)
	if took := time.Since(began) - crowded; err != nil || took > 5*time.Second || !bytes.Contains(said, []byte(wire.CodeTooManySockets)) {
		s.t.Errorf("the first of a crowd was told %q (%v) after %v", said, err, took)
	}
}

func badRequests(s *stage) {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}
	for path, want := range map[string]int{
		"/api/v1/nodes": http.StatusUnauthorized, "/api/v1/../../../etc/passwd": http.StatusNotFound, "/ws": http.StatusBadRequest,
		"/api/v1/dev/token?room=" + strings.Repeat("x", 129): http.StatusBadRequest, "/" + strings.Repeat("x", 40_000): http.StatusRequestHeaderFieldsTooLarge,
	} {
		request, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.url+path, http.NoBody)
		if err != nil {
			s.t.Fatal(err)
		}
		response, err := client.Do(request)
		if err != nil {
			s.t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != want {
			s.t.Errorf("%.60s gives %d, want %d", path, response.StatusCode, want)
		}
	}
}

// nonsense is so many bytes that follow some.
func nonsense(first ...byte) []byte {
	random := make([]byte, 1200)
	_, _ = rand.Read(random) // It never fails.
	return append(first, random...)
}

// pour sends packets again and again, at a pace: a flood that fills the socket's buffer hurts every UDP service alike.
func (s *stage) pour(address string, times int, packets ...[]byte) {
	s.t.Helper()
	conn := s.dial("udp", address)
	for i := range times {
		for _, packet := range packets {
			if _, err := conn.Write(packet); err != nil {
				s.t.Fatal(err)
			}
		}
		if i%50 == 0 {
			s.calm()
		}
	}
}

// mediaNoise is random bytes, a check of nobody's connection, half of one, RTP and a handshake.
func mediaNoise(s *stage) {
	check := append([]byte{0, 1, 0, 16, 0x21, 0x12, 0xa4, 0x42, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 0, 6, 0, 11}, "nobody:here\x00"...)
	s.pour(s.mediaAddress(), 5_000, nonsense(), check, check[:len(check)/2],
		nonsense(0x80, 96, 0, 1, 0, 0, 0, 1, 0, 0, 0, 7), nonsense(22, 0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 60, 1))
}

// checksFromEverywhere checks a connection from more ports than any client has, with the right password. The first are
// answered.
func checksFromEverywhere(s *stage) {
	in := s.intrude("everywhere")
	check := in.check(in.answer(costlessOffer("")))
	address := s.mediaAddress()
	first := s.dial("udp", address)
	s.eventually("the first port is answered", func() error { // the flood before may have cost its packet
		_ = first.SetDeadline(time.Now().Add(time.Second))
		if _, err := first.Write(check); err != nil {
			return err
		}
		_, err := first.Read(make([]byte, 1500))
		return err
	})
	for range 3_000 {
		conn := s.dial("udp", address)
		if _, err := conn.Write(check); err != nil {
			s.t.Fatal(err)
		}
		_ = conn.Close()
	}
}

// controlNoise opens connections that say nothing, and some that speak HTTP/2 without TLS, or TLS without a key.
func controlNoise(s *stage) {
	address := s.address("sfu-1", "control")
	for range 300 {
		s.dial("tcp", address)
	}
	var speaking sync.WaitGroup
	defer speaking.Wait()
	for i := range 100 {
		conn := s.dial("tcp", address)
		_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
		speaking.Go(func() {
			if i%2 == 0 {
				_, _ = io.WriteString(conn, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
				_, _ = io.Copy(io.Discard, conn)
				return
			}
			secured := tls.Client(conn, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
			if secured.HandshakeContext(s.t.Context()) == nil {
				if _, err := secured.Read(make([]byte, 1)); err == nil {
					s.t.Error("the control port speaks to somebody without a key")
				}
			}
		})
	}
}

func gossipNoise(s *stage) {
	for _, node := range []string{"signaling-1", "sfu-1"} {
		address := s.address(node, "gossip")
		s.pour(address, 5_000, nonsense())
		var sending sync.WaitGroup
		for range 30 {
			conn := s.dial("tcp", address)
			_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
			sending.Go(func() {
				noise := nonsense()
				_, err := conn.Write([]byte{10, 0x01, 0x30, 0, 0}) // memberlist's type of an encrypted message, of 19 MB
				for sent := 0; err == nil && sent < 19<<20; sent += len(noise) {
					_, err = conn.Write(noise)
				}
				if err == nil {
					s.t.Errorf("19 MB of noise were read by %s", node)
				}
			})
		}
		sending.Wait()
	}
}
