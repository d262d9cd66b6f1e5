//go:build linux

package attack

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"

	"github.com/coder/websocket"
	"github.com/pion/stun/v4"

	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// intruder is somebody with a place in a room of his own.
type intruder struct {
	s      *stage
	socket *websocket.Conn
	offers int
}

func (s *stage) intrude(identity string) *intruder {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	socket, first, err := s.joinOnceServed(ctx, s.token("room-of-"+identity, identity), storeIsBusy)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = socket.CloseNow() })
	if _, ok := first.(*wire.Joined); !ok {
		s.t.Fatalf("%s is told %+v", identity, first)
	}
	return &intruder{s: s, socket: socket}
}

// offer says an offer and returns its answer, empty for a rejection.
func (i *intruder) offer(sdp string) (answer string, err error) {
	ctx, cancel := context.WithTimeout(i.s.t.Context(), patience)
	defer cancel()
	i.offers++
	id := strconv.Itoa(i.offers)
	if err := write(ctx, i.socket, &wire.Offer{ID: id, SDP: sdp, Fresh: true, Senders: wire.List[wire.Sender]{}}); err != nil {
		return "", err
	}
	for {
		_, frame, err := i.socket.Read(ctx)
		if err != nil {
			return "", err
		}
		m, err := wire.DecodeServer(frame)
		if err != nil {
			return "", err
		}
		switch m := m.(type) {
		case *wire.Answer:
			if m.ID == id {
				return m.SDP, nil
			}
		case *wire.OfferRejected:
			if m.ID == id {
				return "", nil
			}
		case *wire.Error:
			return "", errors.New(m.Message)
		default:
		}
	}
}

// answer is offer for one that must be answered.
func (i *intruder) answer(sdp string) string {
	i.s.t.Helper()
	answer, err := i.offer(sdp)
	if err != nil || answer == "" {
		i.s.t.Fatalf("the offer is not answered: %v", err)
	}
	return answer
}

const theirFragment = "abcd"

// check is an authentic connectivity check of the connection with that answer, which nominates where it comes from.
func (i *intruder) check(answer string) []byte {
	i.s.t.Helper()
	value := func(name string) string {
		_, rest, _ := strings.Cut(answer, "a="+name+":")
		value, _, _ := strings.Cut(rest, "\r\n")
		return value
	}
	message, err := stun.Build(stun.BindingRequest, stun.TransactionID, stun.NewUsername(value("ice-ufrag")+":"+theirFragment),
		stun.RawAttribute{Type: stun.AttrICEControlling, Value: make([]byte, 8)},
		stun.RawAttribute{Type: stun.AttrPriority, Value: []byte{0x6e, 0, 0, 1}},
		stun.RawAttribute{Type: stun.AttrUseCandidate},
		stun.NewShortTermIntegrity(value("ice-pwd")), stun.Fingerprint)
	if err != nil {
		i.s.t.Fatal(err)
	}
	return message.Raw
}

// costlessOffer has one slot for video; more are attributes of it.
func costlessOffer(more string) string {
	return "v=0\r\no=- 42 2 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\na=group:BUNDLE 0\r\n" + slotLine(0, more)
}

func slotLine(mid int, more string) string {
	return fmt.Sprintf("m=video 9 UDP/TLS/RTP/SAVPF 96\r\nc=IN IP4 0.0.0.0\r\na=mid:%d\r\na=recvonly\r\na=rtcp-mux\r\na=rtpmap:96 VP8/90000\r\n", mid) +
		"a=ice-ufrag:" + theirFragment + "\r\na=ice-pwd:abcdefghijklmnopqrstuvwx\r\na=fingerprint:sha-256 " +
		strings.TrimSuffix(strings.Repeat("00:", 32), ":") + "\r\na=setup:actpass\r\n" + more
}

// costlyOffer is as long as may be, with as many slots as there may be and forms of one codec without end.
func costlyOffer() string {
	const slots, bytes = 64, 180 << 10
	var b strings.Builder
	b.WriteString("v=0\r\no=- 42 2 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\na=group:BUNDLE")
	for mid := range slots {
		fmt.Fprint(&b, " ", mid)
	}
	b.WriteString("\r\n")
	for mid := range slots {
		var more strings.Builder
		for form := 0; more.Len() < bytes/slots-500; form++ {
			fmt.Fprintf(&more, "a=fmtp:96 level-asymmetry-allowed=1;packetization-mode=1;x%d=1\r\na=rtcp-fb:96 nack pli\r\na=ssrc-group:FID %d %d\r\n", form, form, form+1)
		}
		b.WriteString(slotLine(mid, more.String()))
	}
	return b.String()
}

// forger sends datagrams to the media node from any port of this machine.
type forger struct {
	conn *net.IPConn // nil where that is not allowed
	to   netip.AddrPort
}

func (s *stage) newForger() *forger {
	s.t.Helper()
	f := &forger{to: netip.MustParseAddrPort(s.mediaAddress())}
	conn, err := net.DialIP("ip4:udp", &net.IPAddr{IP: net.IPv4(127, 0, 0, 1)}, &net.IPAddr{IP: f.to.Addr().AsSlice()})
	if err != nil {
		s.t.Logf("nothing is forged here: %v", err)
		return f
	}
	s.t.Cleanup(func() { conn.Close() })
	f.conn = conn
	return f
}

// send does nothing where forging is not allowed. A checksum of 0 is none (RFC 768).
func (f *forger) send(fromPort uint16, payload []byte) {
	if f.conn == nil {
		return
	}
	b := binary.BigEndian.AppendUint16(nil, fromPort)
	b = binary.BigEndian.AppendUint16(b, f.to.Port())
	b = binary.BigEndian.AppendUint16(b, uint16(8+len(payload)))
	b = binary.BigEndian.AppendUint16(b, 0)
	_, _ = f.conn.Write(append(b, payload...)) // Like a lost packet.
}

// udpPorts are the ports on loopback of this machine but the media node's: the bystanders' are among them.
func (s *stage) udpPorts() []uint16 {
	s.t.Helper()
	table, err := os.ReadFile("/proc/net/udp")
	if err != nil {
		s.t.Fatal(err)
	}
	node := netip.MustParseAddrPort(s.mediaAddress()).Port()
	var ports []uint16
	for line := range strings.Lines(string(table)) {
		if fields := strings.Fields(line); len(fields) > 1 {
			address, port, _ := strings.Cut(fields[1], ":")
			if n, err := strconv.ParseUint(port, 16, 16); err == nil && address == "0100007F" && uint16(n) != node {
				ports = append(ports, uint16(n))
			}
		}
	}
	return ports
}
