package sfu

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/pion/ice/v4"
	"github.com/pion/stun/v4"
	"github.com/pion/webrtc/v4"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/sfu/egress"
)

// iceNames are what both sides of a connection check each other with.
type iceNames struct{ ours, theirs, ourPassword string }

func iceNamesOf(t *testing.T, answer, offer string) iceNames {
	t.Helper()
	line := func(sdp, name string) string {
		_, rest, found := strings.Cut(sdp, "a="+name+":")
		if !found {
			t.Fatalf("no %s in %s", name, sdp)
		}
		value, _, _ := strings.Cut(rest, "\r\n")
		return value
	}
	return iceNames{ours: line(answer, "ice-ufrag"), ourPassword: line(answer, "ice-pwd"), theirs: line(offer, "ice-ufrag")}
}

// check sends what a client sends from a new address, and could send from thousands.
func (n iceNames) check(t *testing.T, conn *net.UDPConn) {
	t.Helper()
	m, err := stun.Build(stun.BindingRequest, stun.TransactionID, stun.NewUsername(n.ours+":"+n.theirs),
		ice.AttrControlling(1<<63), ice.PriorityAttr(1<<30),
		stun.NewShortTermIntegrity(n.ourPassword), stun.Fingerprint)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write(m.Raw); err != nil {
		t.Fatal(err)
	}
}

// remoteAddresses is how many addresses Pion remembers of a peer.
func (c *connection) remoteAddresses() int {
	n := 0
	for _, entry := range c.pc.GetStats() {
		if candidate, ok := entry.(webrtc.ICECandidateStats); ok && candidate.Type == webrtc.StatsTypeRemoteCandidate {
			n++
		}
	}
	return n
}

// TestAClientChecksFromThousandsOfPorts, with the right password. The first are heard, for a
// client changes networks and a NAT its ports. Pion would keep a candidate for each of the
// others too, until the connection ends.
func TestAClientChecksFromThousandsOfPorts(t *testing.T) {
	const few, many = 10, 3000
	s := newStage(t, "one")
	e, _ := s.attach("room", "alice", 1)
	client := newMediaClient(t, 'a', true, 1)
	offer := client.offerMessage(nil)
	e.send(&control.EdgeMessage{Message: &control.EdgeMessage_Offer{Offer: offer}})
	answer := e.awaitAnswer(offer.GetId())
	client.accept(answer)
	e.awaitConnected()
	names := iceNamesOf(t, answer, offer.GetSdp())
	for i := range few {
		conn := s.port()
		names.check(t, conn)
		if err := conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Read(make([]byte, receiveMTU)); err != nil {
			t.Fatalf("network %d of the client is not answered: %v", i+1, err)
		}
		_ = conn.Close()
	}
	// Until so many have been refused: a busy machine loses some before the node reads them.
	for began := time.Now(); s.node.socket.Stats().SourcesRefused < many; {
		if time.Since(began) > patience {
			t.Fatalf("%d checks are refused, want %d", s.node.socket.Stats().SourcesRefused, many)
		}
		conn := s.port()
		names.check(t, conn)
		_ = conn.Close()
	}
	c := s.connectionOf("room", "alice")
	if n := c.remoteAddresses(); n < few || n > egress.MaxSources+maxCandidates {
		t.Errorf("Pion remembers %d addresses", n)
	}
	// The client goes on where it is, and a restart of ICE begins anew.
	client.negotiate(e, &webrtc.OfferOptions{ICERestart: true})
	eventually(t, "the addresses are forgotten, and the client is found", func() bool {
		n := c.remoteAddresses()
		return n > 0 && n < few && c.pc.ICEConnectionState() == webrtc.ICEConnectionStateConnected
	})
	if c != s.connectionOf("room", "alice") {
		t.Error("the restart made another connection")
	}
}

// port is another port of the client's machine.
func (s *stage) port() *net.UDPConn {
	s.t.Helper()
	address, ok := s.node.MediaAddress().(*net.UDPAddr)
	if !ok {
		s.t.Fatal("no UDP address")
	}
	conn, err := net.DialUDP("udp4", nil, &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: address.Port})
	if err != nil {
		s.t.Fatal(err)
	}
	return conn
}
