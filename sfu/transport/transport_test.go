package transport

import (
	"errors"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/pion/rtcp"
	"github.com/pion/rtp"
	"github.com/pion/stun/v4"

	"github.com/holdfast-rtc/holdfast/sfu/egress"
)

func TestMediaGoesBothWays(t *testing.T) {
	transport, w := newTransport(t)
	c := newClient(t, transport, w, "alice")
	c.send(7, 1)
	eventually(t, "the node hears the client", func() bool { return c.got.heard() == 1 })
	writer := c.conn.Writer(&direct{socket: w}, false)
	n, err := writer.WriteRTP(&rtp.Header{Version: 2, SSRC: 9, SequenceNumber: 1}, []byte("frame"))
	if want := 12 + 5 + 16; n != want || err != nil {
		t.Errorf("%d bytes were written, want %d (%v)", n, want, err)
	}
	if err := c.conn.WriteRTCP([]rtcp.Packet{&rtcp.PictureLossIndication{MediaSSRC: 7}}); err != nil {
		t.Error(err)
	}
	c.conn.Close()
	if _, err := writer.WriteRTP(&rtp.Header{Version: 2}, nil); !errors.Is(err, net.ErrClosed) {
		t.Errorf("a write after Close gives %v", err)
	}
	if n := w.strayed(); n != 0 {
		t.Errorf("%d packets went to addresses that nobody named", n)
	}
}

// TestReportsFitADatagram: what one moment has to say of many streams goes out in several.
func TestReportsFitADatagram(t *testing.T) {
	transport, w := newTransport(t)
	c := newClient(t, transport, w, "alice")
	nack := &rtcp.TransportLayerNack{Nacks: make([]rtcp.NackPair, 100)} // 412 bytes
	var packets []rtcp.Packet
	for range 10 {
		packets = append(packets, nack)
	}
	w.sized()
	if err := c.conn.WriteRTCP(packets); err != nil {
		t.Fatal(err)
	}
	const sealed = 4 + 16 // what SRTCP adds
	if n, longest := w.sized(); n != 5 || longest > maxControl+sealed {
		t.Errorf("%d datagrams of up to %d bytes, want 5 of two packets each", n, longest)
	}
}

// TestOnlyThePasswordOpens: a check without it gets no answer and makes the node send nothing anywhere.
func TestOnlyThePasswordOpens(t *testing.T) {
	transport, w := newTransport(t)
	c := newClient(t, transport, w, "alice")
	stranger := egress.UDP(netip.MustParseAddrPort("198.51.100.1:9"))
	right := c.conn.Credentials()
	for _, wrong := range []Credentials{{Ufrag: right.Ufrag, Password: "wrong"}, {Ufrag: "wrong", Password: right.Password}} {
		transport.receive(checkFor(t, wrong, true), stranger, time.Now())
	}
	if w.strayed() != 0 || transport.at(stranger) != nil {
		t.Errorf("%d answers to checks without the password", w.strayed())
	}
	transport.receive(checkFor(t, right, false), stranger, time.Now())
	if w.strayed() != 1 || transport.at(stranger) != c.conn {
		t.Errorf("%d answers to a check with the password, want 1", w.strayed())
	}
	if to := c.conn.selected.Load(); *to != c.from {
		t.Errorf("media goes to %v, which was not nominated, want %v", to, c.from)
	}
}

// TestMediaMovesOnlyToAnAddressThatAnswers: a client could forge the source address of a check, and have its media sent to anybody.
func TestMediaMovesOnlyToAnAddressThatAnswers(t *testing.T) {
	transport, w := newTransport(t)
	c := newClient(t, transport, w, "alice")
	for len(c.answers) > 0 {
		<-c.answers
	}
	moved, arriving := w.address()
	go c.sort(arriving)
	defer arriving.Close()
	for range 2 {
		transport.receive(checkFor(t, c.conn.Credentials(), true), moved, time.Now())
	}
	if to := c.conn.selected.Load(); *to != c.from {
		t.Fatalf("media goes to %v, which has answered nothing", to)
	}
	var back *stun.Message
	for back == nil {
		select {
		case m := <-c.answers:
			if m.Type == stun.BindingRequest {
				back = m
			}
		case <-time.After(patience):
			t.Fatal("the new address is not checked")
		}
	}
	reply := func(password string, from egress.Address) {
		m, err := stun.Build(stun.NewTransactionIDSetter(back.TransactionID), stun.BindingSuccess, stun.NewShortTermIntegrity(password), stun.Fingerprint)
		if err != nil {
			t.Fatal(err)
		}
		transport.receive(m.Raw, from, time.Now())
	}
	reply("wrong", moved)
	reply(theirPassword, c.from)
	if to := c.conn.selected.Load(); *to != c.from {
		t.Fatalf("media goes to %v after answers that prove nothing", to)
	}
	if told := c.got.moved(); told != 0 {
		t.Errorf("told of %d moves before the first", told)
	}
	for range 2 {
		reply(theirPassword, moved)
	}
	if told := c.got.moved(); told != 1 {
		t.Errorf("told of %d moves, want 1", told)
	}
	if to := c.conn.selected.Load(); *to != moved {
		t.Errorf("media goes to %v, want %v, which has answered", to, moved)
	}
}

// TestAFloodOfForgedChecksIsNotVerified: verifying is what costs, so that strangers get little of it; the client is still answered.
func TestAFloodOfForgedChecksIsNotVerified(t *testing.T) {
	transport, w := newTransport(t)
	c := newClient(t, transport, w, "alice")
	right := c.conn.Credentials()
	now := time.Now()
	for i := range 10 * checksBurst {
		from := egress.UDP(netip.AddrPortFrom(netip.MustParseAddr("198.51.100.1"), uint16(1000+i)))
		transport.receive(checkFor(t, Credentials{Ufrag: right.Ufrag, Password: "guess"}, true), from, now)
	}
	if c.conn.mayCheck(egress.UDP(netip.MustParseAddrPort("198.51.100.1:9")), now) {
		t.Error("after a flood of forged checks another stranger is verified")
	}
	for len(c.answers) > 0 {
		<-c.answers
	}
	transport.receive(checkFor(t, right, true), c.from, now)
	select {
	case <-c.answers:
	case <-time.After(patience):
		t.Error("the client is not answered any more")
	}
}

// TestAnswersToAForgedAddressAreBounded: a client can have the node answer checks that it sends in another's name. That one gets few.
func TestAnswersToAForgedAddressAreBounded(t *testing.T) {
	transport, w := newTransport(t)
	c := newClient(t, transport, w, "alice")
	now, check := time.Now(), checkFor(t, c.conn.Credentials(), true)
	for range 10 * checksBurst {
		transport.receive(check, egress.UDP(netip.MustParseAddrPort("198.51.100.1:9")), now)
	}
	if n := w.strayed(); n == 0 || n > checksBurst+backsBurst {
		t.Errorf("%d packets went to the forged address for %d checks, want %d at most", n, 10*checksBurst, checksBurst+backsBurst)
	}
}

// TestAnAddressIsNotTaken: a client whose check comes from the address of another one that is alive gets no answer, and the other
// one's media goes on. When that one has been silent the address is free; a newer connection of the same client may have it at once.
func TestAnAddressIsNotTaken(t *testing.T) {
	transport, w := newTransport(t)
	victim, thief, again := newClient(t, transport, w, "alice"), newClient(t, transport, w, "mallory"), newClient(t, transport, w, "alice")
	now := time.Now()
	for range 20 {
		transport.receive(checkFor(t, thief.conn.Credentials(), true), victim.from, now)
	}
	if transport.at(victim.from) != victim.conn {
		t.Fatal("the address was taken")
	}
	victim.send(7, 1)
	eventually(t, "the victim is heard", func() bool { return victim.got.heard() == 1 })
	if to := thief.conn.selected.Load(); *to != thief.from {
		t.Errorf("the thief's media goes to %v", to)
	}
	transport.receive(checkFor(t, again.conn.Credentials(), true), victim.from, now)
	if transport.at(victim.from) != again.conn {
		t.Error("the same client's newer connection does not get the address")
	}
	transport.receive(checkFor(t, thief.conn.Credentials(), true), victim.from, now.Add(2*disconnectedAfter))
	if transport.at(victim.from) != thief.conn {
		t.Error("the address of a client that is gone is not free")
	}
}

// TestAddressesOfAConnectionAreBounded: a client that checks from thousands of ports keeps the one that it uses.
func TestAddressesOfAConnectionAreBounded(t *testing.T) {
	transport, w := newTransport(t)
	c := newClient(t, transport, w, "alice")
	now := time.Now()
	for i := range 3000 {
		from := egress.UDP(netip.AddrPortFrom(netip.MustParseAddr("198.51.100.1"), uint16(1000+i)))
		now = now.Add(time.Second / checksPerSecond)
		transport.receive(checkFor(t, c.conn.Credentials(), false), from, now)
	}
	transport.mu.RLock()
	defer transport.mu.RUnlock()
	if n := len(transport.byAddress); n != maxAddresses || len(c.conn.addresses) != maxAddresses {
		t.Errorf("%d addresses are kept, want %d", n, maxAddresses)
	}
	if transport.byAddress[c.from] != c.conn {
		t.Error("the address in use was forgotten")
	}
}

// TestARestartKeepsTheOldGenerationForAWhile: a client that restarts ICE still checks the old way until the new one works.
func TestARestartKeepsTheOldGenerationForAWhile(t *testing.T) {
	transport, w := newTransport(t)
	c := newClient(t, transport, w, "alice")
	answered := func(to Credentials) bool {
		before := w.strayed()
		transport.receive(checkFor(t, to, false), egress.UDP(netip.MustParseAddrPort("198.51.100.1:9")), time.Now())
		return w.strayed() > before
	}
	first := c.conn.Credentials()
	c.conn.Restart("more", "more-of-a-password")
	second := c.conn.Credentials()
	if first.Ufrag == second.Ufrag || first.Fingerprint != second.Fingerprint {
		t.Errorf("a restart makes %+v of %+v", second, first)
	}
	if !answered(first) || !answered(second) {
		t.Error("a generation is not answered")
	}
	c.conn.Restart("more", "more-of-a-password")
	if answered(first) || !answered(second) {
		t.Error("the oldest of three generations is answered, or the one before the newest is not")
	}
	if c.got.state() != Connected {
		t.Errorf("the connection is %v", c.got.state())
	}
}

// TestAFloodOfStreamsEndsTheConnection, and costs others nothing.
func TestAFloodOfStreamsEndsTheConnection(t *testing.T) {
	transport, w := newTransport(t)
	wild, calm := newClient(t, transport, w, "wild"), newClient(t, transport, w, "calm")
	calm.send(7, 1)
	for ssrc := range uint32(2 * floodStreams) {
		wild.send(1000+ssrc, 1)
		wild.send(1000+ssrc, 2)
	}
	eventually(t, "the flood ends the connection", func() bool { return wild.got.state() == Failed })
	if n := wild.got.heard(); n != maxStreams {
		t.Errorf("%d streams were heard, want %d", n, maxStreams)
	}
	calm.send(7, 2)
	eventually(t, "the other one is heard", func() bool {
		calm.got.mu.Lock()
		defer calm.got.mu.Unlock()
		return calm.got.streams[7] == 2
	})
}

// TestOneBadPacketEndsOneConnection: whatever it breaks, the others are read on.
func TestOneBadPacketEndsOneConnection(t *testing.T) {
	transport, w := newTransport(t)
	unlucky, other := newClient(t, transport, w, "unlucky"), newClient(t, transport, w, "other")
	unlucky.send(deadlySSRC, 1)
	unlucky.send(7, 1)
	other.send(7, 1)
	eventually(t, "the other is heard", func() bool { return other.got.heard() == 1 })
	eventually(t, "the connection is ended", func() bool { return unlucky.got.state() == Failed })
	if n := unlucky.got.heard(); n != 0 {
		t.Errorf("%d streams are heard on a connection whose packet broke the node's reading", n)
	}
}

// TestWhatBreaksBesideThePacketsEndsOneConnection: reports and changes of state are told by clocks of the transport.
func TestWhatBreaksBesideThePacketsEndsOneConnection(t *testing.T) {
	for name, arm := range map[string]func(*recorder){
		"a report": func(r *recorder) { r.deadlyTick = true }, "a change of state": func(r *recorder) { r.deadlyState = true },
	} {
		t.Run(name, func(t *testing.T) {
			transport, w := newTransport(t)
			unlucky, other := newClient(t, transport, w, "unlucky"), newClient(t, transport, w, "other")
			unlucky.got.mu.Lock()
			arm(unlucky.got)
			unlucky.got.mu.Unlock()
			unlucky.conn.TickAt(time.Now())
			if name == "a change of state" {
				silent := time.Now().Add(-disconnectedAfter)
				unlucky.conn.heardFrom(unlucky.from, silent)
				unlucky.conn.heardFrom(other.from, silent)
			}
			eventually(t, "the panic is counted", func() bool { return transport.panics.Count() > 0 })
			eventually(t, "the connection is ended", func() bool { return unlucky.got.state() == Failed })
			other.send(7, 1)
			eventually(t, "the other is heard", func() bool { return other.got.heard() == 1 })
		})
	}
}

// TestSilence: disconnected, back, and failed for good. An alert only makes the node less patient, for anybody could have sent it.
func TestSilence(t *testing.T) {
	transport, w := newTransport(t)
	c := newClient(t, transport, w, "alice")
	now := time.Now()
	c.conn.settle(now.Add(disconnectedAfter + time.Second))
	if s := c.got.state(); s != Disconnected {
		t.Errorf("after %v of silence the connection is %v", disconnectedAfter, s)
	}
	back := now.Add(10 * time.Second)
	transport.receive(checkFor(t, c.conn.Credentials(), true), c.from, back)
	c.conn.settle(back)
	if s := c.got.state(); s != Connected {
		t.Errorf("a client that is heard again is %v", s)
	}
	transport.receive([]byte{alertRecord, 1, 2, 3}, c.from, back.Add(time.Millisecond))
	c.conn.settle(back.Add(goodbyeAfter / 2))
	if s := c.got.state(); s != Connected {
		t.Errorf("after an alert that is not authenticated the connection is %v", s)
	}
	c.conn.settle(back.Add(goodbyeAfter))
	if s := c.got.state(); s != Failed {
		t.Errorf("after an alert and %v of silence the connection is %v", goodbyeAfter, s)
	}
}
