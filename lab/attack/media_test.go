//go:build linux

package attack

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/pion/interceptor"
	"github.com/pion/rtp"
	"github.com/pion/webrtc/v4"
)

// mostMemory is what an attack may cost the media node.
const mostMemory = 64 << 20

// TestAttacksOnTheMediaNode: one after the other, each by people who have places in rooms of their own.
func TestAttacksOnTheMediaNode(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.each("sfu-1", mostMemory, []attack{
		{"a flood of SSRCs", floodOfSSRCs},
		{"twenty thieves of addresses", twentyThieves},
		{"reflection", reflection},
		{"costly offers of ten people", costlyOffers},
		{"handshakes that never end", endlessHandshakes},
	})
}

// restless sends every packet from another SSRC.
type restless struct{ *interceptor.NoOp }

func (r restless) NewInterceptor(string) (interceptor.Interceptor, error) { return r, nil }

func (restless) BindLocalStream(_ *interceptor.StreamInfo, writer interceptor.RTPWriter) interceptor.RTPWriter {
	return interceptor.RTPWriterFunc(func(header *rtp.Header, payload []byte, attributes interceptor.Attributes) (int, error) {
		header.SSRC = rand.Uint32()
		return writer.Write(header, payload, attributes)
	})
}

// floodOfSSRCs has an authenticated client send from ever new SSRCs. For each a media node has to keep keys and a replay window.
func floodOfSSRCs(s *stage) {
	in := s.intrude("flooder")
	engine, registry, settings := &webrtc.MediaEngine{}, &interceptor.Registry{}, webrtc.SettingEngine{}
	settings.SetIncludeLoopbackCandidate(true)
	registry.Add(restless{&interceptor.NoOp{}})
	if err := engine.RegisterDefaultCodecs(); err != nil {
		s.t.Fatal(err)
	}
	pc, err := webrtc.NewAPI(webrtc.WithMediaEngine(engine), webrtc.WithInterceptorRegistry(registry), webrtc.WithSettingEngine(settings)).
		NewPeerConnection(webrtc.Configuration{})
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = pc.GracefulClose() }() // The test has judged by then.
	track, err := webrtc.NewTrackLocalStaticRTP(webrtc.RTPCodecCapability{MimeType: webrtc.MimeTypeVP8, ClockRate: 90000}, "camera", "stream")
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err := pc.AddTransceiverFromTrack(track, webrtc.RTPTransceiverInit{Direction: webrtc.RTPTransceiverDirectionSendonly}); err != nil {
		s.t.Fatal(err)
	}
	offer, err := pc.CreateOffer(nil)
	if err == nil {
		err = pc.SetLocalDescription(offer)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	answer := in.answer(offer.SDP)
	if err := pc.SetRemoteDescription(webrtc.SessionDescription{Type: webrtc.SDPTypeAnswer, SDP: answer}); err != nil {
		s.t.Fatal(err)
	}
	packet := &rtp.Packet{Header: rtp.Header{Version: 2}, Payload: make([]byte, 1000)}
	flood := func() {
		for range 100 {
			packet.SequenceNumber++
			_ = track.WriteRTP(packet) // Before the handshake has ended nothing is sent.
		}
	}
	s.eventually("the connection is ended", func() error {
		flood()
		said, err := s.cluster.Logs(s.t.Context(), "sfu-1")
		if err == nil && !strings.Contains(said, "too many SSRCs") {
			err = fmt.Errorf("the connection is %s", pc.ConnectionState())
		}
		return err
	})
	for range 100 {
		flood()
	}
}

// twentyThieves want the bystanders' packets: they name the bystanders' addresses as candidates of their own, and check their own connections from
// there, again and again.
func twentyThieves(s *stage) {
	victims := s.udpPorts()
	if len(victims) < len(s.call) {
		s.t.Fatalf("%d addresses for %d bystanders", len(victims), len(s.call))
	}
	var candidates strings.Builder
	for i, port := range victims {
		fmt.Fprintf(&candidates, "a=candidate:%d 1 udp 2130706431 127.0.0.1 %d typ host\r\n", i, port)
	}
	f := s.newForger()
	var checks [][]byte
	for i := range 20 {
		in := s.intrude(fmt.Sprint("thief-", i))
		checks = append(checks, in.check(in.answer(costlessOffer(candidates.String()))))
	}
	for range 50 {
		for _, check := range checks {
			for _, port := range victims {
				f.send(port, check)
			}
		}
		s.calm()
	}
}

// reflection has the media node send to somebody who never asked for it: it is named as a candidate, and as the source of checks. What
// comes there is bounded by the second, and by far less than what was sent in its name.
func reflection(s *stage) {
	victim, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		s.t.Fatal(err)
	}
	defer victim.Close()
	port := netip.MustParseAddrPort(victim.LocalAddr().String()).Port()
	in := s.intrude("reflector")
	answer := in.answer(costlessOffer(fmt.Sprintf("a=candidate:1 1 udp 2130706431 127.0.0.1 %d typ host\r\n", port)))
	received := func(wait time.Duration) (packets, bytes int) {
		b := make([]byte, 1500)
		_ = victim.SetReadDeadline(time.Now().Add(wait))
		for {
			n, err := victim.Read(b)
			if err != nil {
				return packets, bytes
			}
			packets, bytes = packets+1, bytes+n
		}
	}
	if packets, _ := received(time.Second); packets > 0 {
		s.t.Errorf("%d packets were sent to a candidate", packets)
	}
	f, check := s.newForger(), in.check(answer)
	if f.conn == nil {
		return
	}
	const sent = 2000
	began := time.Now()
	for i := range sent {
		f.send(port, check)
		if i%100 == 0 {
			s.calm()
		}
	}
	packets, bytes := received(time.Second)
	// Checks that are verified, our own checks, and what a handshake sends.
	most := 100 + 40 + 20 + int(70*(time.Since(began).Seconds()+1))
	s.t.Logf("%d checks of %d bytes brought %d packets of %d bytes in all", sent, len(check), packets, bytes)
	if packets == 0 || packets > most || bytes > sent*len(check)/2 {
		s.t.Errorf("%d packets of %d bytes came for %d of %d, want %d at most and half the bytes", packets, bytes, sent, sent*len(check), most)
	}
}

// costlyOffers has ten people offer the largest text that is read, as often as they can: a socket is read at a pace.
func costlyOffers(s *stage) {
	offer := costlyOffer()
	const people, offers = 10, 4
	answered := make(chan int)
	for i := range people {
		in := s.intrude(fmt.Sprint("bomber-", i))
		go func() {
			n := 0
			for range offers {
				switch answer, err := in.offer(offer); {
				case err != nil:
					s.t.Errorf("bomber %d: %v", i, err)
				case answer != "":
					n++
				}
			}
			answered <- n
		}()
	}
	began, all := time.Now(), 0
	for range people {
		all += <-answered
	}
	s.t.Logf("%d offers of %d KiB were answered in %v", all, len(offer)>>10, time.Since(began))
	if all < people {
		s.t.Errorf("%d offers were answered: the attack does not work", all)
	}
}

// endlessHandshakes begins a hundred handshakes that it does not go on with, feeds them records of nonsense, and checks their
// connections with wrong passwords.
func endlessHandshakes(s *stage) {
	record := binary.BigEndian.AppendUint16([]byte{22, 0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 0, 1}, 200)
	record = append(record, 2, 0, 0, 188, 0, 0, 0, 0, 0, 0, 0, 188)
	record = append(record, make([]byte, 188)...)
	type handshake struct {
		conn  net.Conn
		check []byte
	}
	var handshakes []handshake
	address := s.mediaAddress()
	for i := range 100 {
		in := s.intrude(fmt.Sprint("sleeper-", i))
		check := in.check(in.answer(costlessOffer("")))
		conn := s.dial("udp", address)
		if _, err := conn.Write(check); err != nil {
			s.t.Fatal(err)
		}
		handshakes = append(handshakes, handshake{conn, check})
	}
	for i, h := range handshakes {
		s.eventually(fmt.Sprintf("handshake %d begins", i), func() error { // a flood may have cost the check
			b := make([]byte, 1500)
			_ = h.conn.SetDeadline(time.Now().Add(time.Second))
			for {
				n, err := h.conn.Read(b)
				if err != nil {
					_, _ = h.conn.Write(h.check)
					return err
				}
				if n > 0 && b[0] == 22 {
					return h.conn.SetDeadline(time.Time{})
				}
			}
		})
	}
	for range 100 {
		for i := range handshakes {
			h := &handshakes[i]
			wrong := append([]byte(nil), h.check...)
			wrong[len(wrong)-10] ^= 1
			_, _ = h.conn.Write(record)
			_, _ = h.conn.Write(wrong)
		}
		s.calm()
	}
}

// calm lets the node read: a flood that fills the socket's buffer hurts every UDP service alike.
func (s *stage) calm() {
	select {
	case <-time.After(5 * time.Millisecond):
	case <-s.t.Context().Done():
	}
}

func (s *stage) mediaAddress() string { return s.address("sfu-1", "media") }
