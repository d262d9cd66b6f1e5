package transport

import (
	"context"
	"errors"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pion/stun/v4"

	"github.com/holdfast-rtc/holdfast/sfu/egress"
)

// TestMediaFollowsTheAddressThatAnswers: control's address may lead nowhere, when the other node is behind a NAT that shows another one, and
// the other node may change its address.
func TestMediaFollowsTheAddressThatAnswers(t *testing.T) {
	onCable(t, func(t *testing.T, net *cable, a, b *mediaNode) {
		atA, atB := join(a, b)
		seen := func(port uint16) egress.Address {
			return egress.UDP(netip.AddrPortFrom(netip.MustParseAddr("198.51.100.1"), port))
		}
		show := func(at egress.Address) {
			net.mu.Lock()
			defer net.mu.Unlock()
			net.outside[b.at] = at
		}
		show(seen(9))
		done := make(chan error)
		go func() { done <- atA.dial(atB) }()
		synctest.Wait()
		if err := atB.dial(atA); err != nil {
			t.Fatal(err)
		}
		pass(keepEvery + watchEvery) // B's next check.
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		goes := func(want egress.Address, moves int) {
			t.Helper()
			synctest.Wait()
			if to := atA.conn.selected.Load(); to == nil || *to != want || atA.got.moved() != moves {
				t.Fatalf("media goes to %v after %d moves, want %v after %d", to, atA.got.moved(), want, moves)
			}
		}
		goes(seen(9), 0)
		checked := func() time.Time {
			atA.conn.mu.Lock()
			defer atA.conn.mu.Unlock()
			return atA.conn.keyed.checked
		}
		for before := checked(); checked().Equal(before); {
			pass(watchEvery / 10)
		}
		show(seen(10)) // The former address has just answered.
		pass(silentAfter - watchEvery)
		goes(seen(9), 0) // It has not been silent for long, and a check from elsewhere may be a copy.
		pass(keepEvery + 3*watchEvery)
		goes(seen(10), 1)
		if atA.got.state() != Connected || atB.got.state() != Connected {
			t.Errorf("the ends are %v and %v", atA.got.state(), atB.got.state())
		}
		atA.send(7, 1)
		synctest.Wait()
		if n, _ := atB.heard(7); n != 1 {
			t.Error("nothing comes to the new address")
		}
	})
}

// TestNoClientTakesAMediaNodesAddress, and a media node gets its address from a client that has forged it.
func TestNoClientTakesAMediaNodesAddress(t *testing.T) {
	transport, w := newTransport(t)
	thief := newClient(t, transport, w, "b") // It is called as the media node is.
	ours, _ := NewKeys()
	node := &mediaNode{t: t, transport: transport, socket: w}
	at := egress.UDP(netip.MustParseAddrPort("198.51.100.1:9"))
	forged := checkFor(t, thief.conn.Credentials(), true)
	transport.receive(forged, at, time.Now())
	if transport.at(at) != thief.conn {
		t.Fatal("a client does not get an address that is free")
	}
	link := node.open("b", ours)
	dialling, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- link.conn.Dial(dialling, at.AddrPort, Credentials{Ufrag: "u", Password: "p"}) }()
	eventually(t, "the media node gets its address", func() bool { return transport.at(at) == link.conn })
	for _, later := range []time.Duration{0, silentAfter, deadAfter, time.Hour} {
		transport.receive(forged, at, time.Now().Add(later))
	}
	for port := range uint16(2 * maxAddresses) { // Copies of the other node's checks come from many addresses.
		from := egress.UDP(netip.AddrPortFrom(netip.MustParseAddr("198.51.100.3"), 1+port))
		transport.receive(checkFor(t, link.conn.Credentials(), false), from, time.Now())
	}
	if transport.at(at) != link.conn {
		t.Error("a client takes the address of a media node")
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled Dial returns %v", err)
	}
	if err := thief.conn.Dial(t.Context(), at.AddrPort, Credentials{Ufrag: "u", Password: "p"}); !errors.Is(err, errNotKeyed) {
		t.Errorf("a client is dialled: %v", err)
	}
}

// TestAKeyedConnectionIsUDPAlone: a check that comes by TCP is not answered.
func TestAKeyedConnectionIsUDPAlone(t *testing.T) {
	transport, w := newTransport(t)
	ours, _ := NewKeys()
	link := (&mediaNode{t: t, transport: transport, socket: w}).open("b", ours)
	at := netip.MustParseAddrPort("198.51.100.1:9")
	check := checkFor(t, link.conn.Credentials(), true)
	transport.receive(check, egress.Address{AddrPort: at, Stream: &egress.Stream{}}, time.Now())
	if w.strayed() != 0 {
		t.Error("a check by TCP is answered")
	}
	transport.receive(check, egress.UDP(at), time.Now())
	if w.strayed() != 1 {
		t.Error("a check by UDP is not answered")
	}
}

// TestAnAnswerCountsOnlyFromWhereItWasAsked: somebody on the path could send the other node's checks and answers on from elsewhere.
func TestAnAnswerCountsOnlyFromWhereItWasAsked(t *testing.T) {
	onCable(t, func(t *testing.T, net *cable, a, b *mediaNode) {
		atA, atB := join(a, b)
		if err := atB.dial(atA); err != nil {
			t.Fatal(err)
		}
		elsewhere := egress.UDP(netip.MustParseAddrPort("198.51.100.1:9"))
		a.transport.receive(net.log(a.at)[0].b, elsewhere, time.Now())
		if a.transport.at(elsewhere) != atA.conn {
			t.Fatal("an authentic check does not tell what comes from its address, so the test would show nothing")
		}
		net.setCut(true)
		done := make(chan error)
		go func() { done <- atA.dial(atB) }()
		synctest.Wait()
		check := &stun.Message{Raw: net.log(b.at)[0].b}
		if err := check.Decode(); err != nil {
			t.Fatal(err)
		}
		answerFrom(t, a, check, atB.conn.Credentials().Password, elsewhere)
		if to := atA.conn.selected.Load(); to != nil {
			t.Errorf("media goes to %v, which was not asked", to)
		}
		answerFrom(t, a, check, atB.conn.Credentials().Password, b.at)
		if to := atA.conn.selected.Load(); to == nil || *to != b.at {
			t.Errorf("media goes to %v, want %v", to, b.at)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// answerFrom has a node read an answer to its check.
func answerFrom(t *testing.T, n *mediaNode, check *stun.Message, password string, from egress.Address) {
	t.Helper()
	m, err := stun.Build(stun.NewTransactionIDSetter(check.TransactionID), stun.BindingSuccess, stun.NewShortTermIntegrity(password), stun.Fingerprint)
	if err != nil {
		t.Fatal(err)
	}
	n.transport.receive(m.Raw, from, time.Now())
}
