package transport

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pion/rtp"
	"github.com/pion/stun/v4"

	"github.com/holdfast-rtc/holdfast/sfu/egress"
)

// onCable runs a test with two media nodes on a virtual clock.
func onCable(t *testing.T, test func(t *testing.T, net *cable, a, b *mediaNode)) {
	synctest.Test(t, func(t *testing.T) {
		net := newCable(t)
		test(t, net, net.node(1), net.node(2))
	})
}

// countdown is a handler that says when it has heard what was sent from each of two goroutines.
type countdown struct {
	recorder

	heard [2]chan struct{}
}

func (h *countdown) RTP(header *rtp.Header, packet []byte, at time.Time) {
	h.recorder.RTP(header, packet, at)
	h.heard[header.SSRC%2] <- struct{}{}
}

// TestTwoMediaNodesByKeys: two hundred streams from two goroutines, in batches of sockets of the kernel. Everything arrives, in order.
func TestTwoMediaNodesByKeys(t *testing.T) {
	a, b := kernelNode(t), kernelNode(t)
	atA, atB := join(a, b)
	const each, rounds, gathered = 100, 10, 20
	got := &countdown{recorder: recorder{streams: map[uint32]int{}}}
	for i := range got.heard {
		got.heard[i] = make(chan struct{}, gathered)
	}
	atB.conn.cfg.Handler, atB.got = got, &got.recorder
	up(t, atA, atB)
	ended := make(chan error, 2)
	for half := range uint32(2) {
		go func() { ended <- sendRounds(atA, got.heard[half], half, each, rounds, gathered) }()
	}
	for range 2 {
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
	}
	for ssrc := range uint32(2 * each) {
		if n, _ := atB.heard(ssrc); n != rounds {
			t.Errorf("%d packets of SSRC %d were heard, want %d", n, ssrc, rounds)
		}
	}
	if ssrcs := atB.got.heard(); ssrcs != 2*each {
		t.Errorf("%d SSRCs were heard, want %d", ssrcs, 2*each)
	}
}

// sendRounds sends the packets of every second SSRC, and waits for each batch, so that the kernel's buffer need not hold all.
func sendRounds(from *trunk, heard chan struct{}, half uint32, each, rounds, gathered int) error {
	batch := from.node.socket.(*egress.Conn).NewBatch()
	w := from.conn.Writer(batch, true)
	payload := make([]byte, 1000)
	for n := range rounds * each / gathered {
		batch.Begin()
		for i := range gathered {
			at := n*gathered + i
			header := &rtp.Header{Version: 2, SSRC: uint32(at%each)*2 + half, SequenceNumber: uint16(65530 + at/each), PayloadType: 96}
			if sent, err := w.WriteRTP(header, payload); sent == 0 || err != nil {
				return errors.Join(errors.New("a packet was not sent"), err)
			}
		}
		batch.End()
		for range gathered {
			select {
			case <-heard:
			case <-time.After(patience):
				return errors.New("a packet was not heard")
			}
		}
	}
	return nil
}

// kernelNode is a media node on sockets of the kernel.
func kernelNode(t *testing.T) *mediaNode {
	t.Helper()
	bound, err := egress.Listen(&net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}, 2)
	if err != nil {
		t.Fatal(err)
	}
	media := egress.New(egress.Options{Gather: true, Segment: true}, bound...)
	at := egress.UDP(bound[0].LocalAddr().(*net.UDPAddr).AddrPort())
	return runNode(t, media, at, func() { _ = media.Close() })
}

// TestBothEndsAreUpAtTheFirstAnswer, whoever dials first, and media and reports go both ways.
func TestBothEndsAreUpAtTheFirstAnswer(t *testing.T) {
	onCable(t, func(t *testing.T, _ *cable, a, b *mediaNode) {
		atA, atB := join(a, b)
		begun := time.Now()
		if err := atB.dial(atA); err != nil {
			t.Fatal(err)
		}
		atB.send(7, 1)
		synctest.Wait()
		if n, _ := atA.heard(7); n != 1 {
			t.Error("a node that has not dialled does not hear the other one, which has")
		}
		if n := atA.send(7, 1); n != 0 || atA.got.state() != Connecting {
			t.Errorf("%d bytes were sent to an address that has answered nothing", n)
		}
		if err := atA.dial(atB); err != nil {
			t.Fatal(err)
		}
		atA.send(8, 1)
		atA.report(8)
		atB.report(7)
		synctest.Wait()
		_, reportsA := atA.heard(7)
		if n, reportsB := atB.heard(8); n != 1 || reportsA != 1 || reportsB != 1 {
			t.Errorf("%d packets, %d and %d reports were heard, want 1 each", n, reportsA, reportsB)
		}
		if atA.got.state() != Connected || atB.got.state() != Connected {
			t.Errorf("the ends are %v and %v", atA.got.state(), atB.got.state())
		}
		if took := time.Since(begun); took != 0 {
			t.Errorf("the ends waited %v, although nothing was lost", took)
		}
		if at := atA.conn.Network(); at != "udp" {
			t.Errorf("the connection is on %q", at)
		}
		if err := atA.dialWith(egress.Address{AddrPort: netip.MustParseAddrPort("192.0.2.9:9")}, Credentials{Ufrag: "x", Password: "y"}); err != nil {
			t.Errorf("a connection that is up is dialled again: %v", err)
		}
		pass(2 * deadAfter)
		if atA.got.state() != Connected {
			t.Error("a second Dial has broken the connection")
		}
	})
}

// TestALostCheckIsRepeated, and an answer that comes after Dial has given up changes nothing.
func TestALostCheckIsRepeated(t *testing.T) {
	onCable(t, func(t *testing.T, net *cable, a, b *mediaNode) {
		atA, atB := join(a, b)
		net.setCut(true)
		ctx, cancel := context.WithTimeout(t.Context(), 3*dialEvery/2)
		defer cancel()
		if err := atA.conn.Dial(ctx, b.at.AddrPort, atB.conn.Credentials()); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("Dial over a cut cable returns %v", err)
		}
		net.setCut(false)
		lost := net.log(b.at)
		if len(lost) != 2 {
			t.Fatalf("%d checks were sent, want 2", len(lost))
		}
		b.socket.(*cableSocket).in <- lost[0].datagram // It is only late: the other node answers.
		synctest.Wait()
		if n := atA.send(7, 1); n != 0 || atA.got.state() != Connecting {
			t.Errorf("after Dial has failed the connection is %v and has sent %d bytes", atA.got.state(), n)
		}
		net.setCut(true)
		begun := time.Now()
		time.AfterFunc(dialEvery/2, func() { net.setCut(false) })
		if err := atA.dial(atB); err != nil || time.Since(begun) != dialEvery {
			t.Errorf("Dial whose first check was lost returns %v after %v, want nil after %v", err, time.Since(begun), dialEvery)
		}
		// IPv4 addresses may come in the form of IPv6.
		mapped := egress.UDP(netip.AddrPortFrom(netip.AddrFrom16(a.at.Addr().As16()), a.at.Port()))
		begun = time.Now()
		if err := atB.dialWith(mapped, atA.conn.Credentials()); err != nil || time.Since(begun) != 0 {
			t.Errorf("Dial of %v returns %v after %v", mapped, err, time.Since(begun))
		}
	})
}

// TestWhoHasNotThePasswordHearsNothing: the other node answers nothing, and this one sends nothing but checks.
func TestWhoHasNotThePasswordHearsNothing(t *testing.T) {
	onCable(t, func(t *testing.T, net *cable, a, b *mediaNode) {
		atA, atB := join(a, b)
		right := atB.conn.Credentials()
		for _, wrong := range []Credentials{{Ufrag: right.Ufrag, Password: "wrong"}, {Ufrag: "wrong", Password: right.Password}} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			done := make(chan error)
			go func() { done <- atA.conn.Dial(ctx, b.at.AddrPort, wrong) }()
			synctest.Wait()
			check := &stun.Message{Raw: net.log(b.at)[0].b}
			if err := check.Decode(); err != nil {
				t.Fatal(err)
			}
			// Somebody at the other node's address answers without the password, and the node itself from elsewhere.
			answerFrom(t, a, check, "guess", b.at)
			answerFrom(t, a, check, wrong.Password, egress.UDP(netip.MustParseAddrPort("198.51.100.1:9")))
			synctest.Wait()
			atA.send(7, 1)
			atA.report(7)
			if err := <-done; !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Dial with %+v returns %v", wrong, err)
			}
			if came := net.log(a.at); len(came) != 0 {
				t.Errorf("a node answers %d checks without its password", len(came))
			}
		}
		if err := atA.conn.Dial(t.Context(), b.at.AddrPort, Credentials{}); !errors.Is(err, errNobody) {
			t.Errorf("Dial without credentials returns %v", err)
		}
		if atA.got.state() != Connecting || atB.got.state() != Connecting {
			t.Errorf("the ends are %v and %v", atA.got.state(), atB.got.state())
		}
	})
}

// TestNothingButChecksGoesToASilentAddress, before Dial and during it.
func TestNothingButChecksGoesToASilentAddress(t *testing.T) {
	onCable(t, func(t *testing.T, net *cable, a, b *mediaNode) {
		atA, atB := join(a, b)
		silent := egress.UDP(netip.MustParseAddrPort("198.51.100.1:9"))
		done := make(chan error)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { done <- atA.conn.Dial(ctx, silent.AddrPort, atB.conn.Credentials()) }()
		for sequence := range uint16(10) {
			pass(dialEvery)
			if n := atA.send(7, sequence); n != 0 {
				t.Fatalf("%d bytes were sent to an address that has answered nothing", n)
			}
			atA.report(7)
		}
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("a cancelled Dial returns %v", err)
		}
		for _, p := range net.log(silent) {
			if checkedUser(p.b) == nil {
				t.Fatalf("%x went to an address that has answered nothing", p.b)
			}
		}
	})
}

// TestWrongKeysHearNothing: both ends are up by their passwords, and neither can read the other.
func TestWrongKeysHearNothing(t *testing.T) {
	onCable(t, func(t *testing.T, _ *cable, a, b *mediaNode) {
		ours, _ := NewKeys()
		_, theirs := NewKeys()
		atA, atB := a.open("b", ours), b.open("a", theirs)
		up(t, atA, atB)
		for sequence := range uint16(10) {
			for _, end := range []*trunk{atA, atB} {
				if end.send(7, sequence) == 0 {
					t.Fatal("nothing was sent")
				}
				end.report(7)
			}
		}
		synctest.Wait()
		for _, end := range []*trunk{atA, atB} {
			if packets, reports := end.heard(7); packets+reports != 0 || end.got.heard() != 0 {
				t.Errorf("%d packets and %d reports were heard with other keys", packets, reports)
			}
		}
	})
}

// TestAReplayedPacketIsHeardOnce, and a late one is heard if fewer than 2,048 have overtaken it.
func TestAReplayedPacketIsHeardOnce(t *testing.T) {
	onCable(t, func(t *testing.T, net *cable, a, b *mediaNode) {
		atA, atB := join(a, b)
		up(t, atA, atB)
		synctest.Wait()
		expect := func(what string, want int) {
			t.Helper()
			synctest.Wait()
			if n, _ := atB.heard(7); n != want {
				t.Errorf("%s: %d packets were heard, want %d", what, n, want)
			}
		}
		net.log(b.at)
		atA.send(7, 10)
		atA.report(7)
		atA.report(7)
		again := net.log(b.at)
		for range 3 {
			for _, p := range again {
				b.socket.(*cableSocket).in <- datagram{from: p.from, b: slices.Clone(p.b)}
			}
		}
		expect("a packet four times", 1)
		if _, reports := atB.heard(7); reports != 2 {
			t.Errorf("two reports are heard as %d", reports)
		}
		net.setCut(true)
		atA.send(7, 11)
		atA.send(7, 12)
		late := net.log(b.at)
		net.setCut(false)
		atA.send(7, 11+2048)
		for _, p := range late {
			b.socket.(*cableSocket).in <- p.datagram
		}
		expect("two late packets, the first by too much", 3)
	})
}

// TestTheDeathOfAMediaNodeIsFound after a stated silence, from either end, and nobody else is needed to keep a connection without media up.
func TestTheDeathOfAMediaNodeIsFound(t *testing.T) {
	onCable(t, func(t *testing.T, net *cable, a, b *mediaNode) {
		atA, atB := join(a, b)
		up(t, atA, atB)
		const quiet = 20
		net.log(b.at)
		pass(quiet * time.Second)
		checks := 0
		for _, p := range net.log(b.at) {
			if checkedUser(p.b) != nil {
				checks++
			}
		}
		if most := int(quiet * time.Second / keepEvery); checks > most || checks < most*3/4 {
			t.Errorf("%d checks were sent in %d s, want one a second", checks, quiet)
		}
		states := func(want State) {
			t.Helper()
			synctest.Wait()
			if atA.got.state() != want || atB.got.state() != want {
				t.Fatalf("the ends are %v and %v, want %v", atA.got.state(), atB.got.state(), want)
			}
		}
		states(Connected)
		net.setCut(true)
		pass(silentAfter - keepEvery - watchEvery)
		states(Connected)
		pass(keepEvery + 2*watchEvery)
		states(Disconnected)
		net.setCut(false)
		pass(keepEvery + 2*watchEvery)
		states(Connected)
		net.setCut(true)
		a.transport.receive([]byte{alertRecord, 1, 2, 3}, b.at, time.Now()) // It means nothing without DTLS.
		pass(deadAfter - keepEvery - watchEvery)
		states(Disconnected)
		pass(keepEvery + 2*watchEvery)
		states(Failed)
		net.setCut(false)
		net.log(b.at)
		pass(2 * keepEvery)
		states(Failed)
		if n := len(net.log(b.at)); n != 0 {
			t.Errorf("%d packets were sent to a node that was given up", n)
		}
	})
}

// TestACheckIsNoProofOfLife: somebody on the path could send copies of a dead node's checks.
func TestACheckIsNoProofOfLife(t *testing.T) {
	onCable(t, func(t *testing.T, net *cable, a, b *mediaNode) {
		atA, atB := join(a, b)
		up(t, atA, atB)
		synctest.Wait()
		copied := net.log(a.at)
		b.stop()
		for range 2 * deadAfter / time.Second {
			pass(time.Second)
			for _, p := range copied {
				a.socket.(*cableSocket).in <- datagram{from: p.from, b: slices.Clone(p.b)}
			}
		}
		synctest.Wait()
		if s := atA.got.state(); s != Failed {
			t.Errorf("a connection to a dead node is %v while its checks are repeated", s)
		}
	})
}

// TestAMediaNodeThatRestartsHasFreshKeys: the new connection takes the address at once, the old one dies, and what was sealed for it opens nowhere.
func TestAMediaNodeThatRestartsHasFreshKeys(t *testing.T) {
	onCable(t, func(t *testing.T, net *cable, a, b *mediaNode) {
		atA, atB := join(a, b)
		up(t, atA, atB)
		synctest.Wait()
		net.log(a.at)
		atB.send(7, 1)
		synctest.Wait()
		old := net.log(a.at)
		b.stop()
		pass(time.Second)
		again := net.node(2)
		freshA, freshB := join(a, again)
		if err := freshB.dial(freshA); err != nil { // Its checks alone take the address from the old connection.
			t.Fatal(err)
		}
		freshB.send(8, 1)
		for _, p := range old {
			a.socket.(*cableSocket).in <- p.datagram
		}
		synctest.Wait()
		if n, _ := freshA.heard(8); n != 1 || freshA.got.heard() != 1 {
			t.Errorf("the new connection has heard %d packets of the new boot and %d streams, want 1 and 1", n, freshA.got.heard())
		}
		if err := freshA.dial(freshB); err != nil {
			t.Fatal(err)
		}
		// Somebody has copies of what the old boot sent: the newer connection keeps the address.
		a.transport.receive(checkFor(t, atA.conn.Credentials(), true), b.at, time.Now())
		if a.transport.at(b.at) != freshA.conn {
			t.Error("an older connection takes the address back")
		}
		pass(deadAfter + time.Second)
		if s, fresh := atA.got.state(), freshA.got.state(); s != Failed || fresh != Connected {
			t.Errorf("the old connection is %v and the new one %v", s, fresh)
		}
		atA.conn.Close()
		if a.transport.at(b.at) != freshA.conn {
			t.Error("the end of the old connection takes the address from the new one")
		}
	})
}

// TestCloseEndsDial, and a closed connection cannot be dialled.
func TestCloseEndsDial(t *testing.T) {
	onCable(t, func(t *testing.T, _ *cable, a, b *mediaNode) {
		atA, atB := join(a, b)
		done := make(chan error)
		go func() {
			done <- atA.dialWith(egress.UDP(netip.MustParseAddrPort("198.51.100.1:9")), atB.conn.Credentials())
		}()
		synctest.Wait()
		atA.conn.Close()
		if err := <-done; !errors.Is(err, net.ErrClosed) {
			t.Errorf("Dial of a connection that is closed meanwhile returns %v", err)
		}
		if err := atA.dial(atB); !errors.Is(err, net.ErrClosed) {
			t.Errorf("Dial of a closed connection returns %v", err)
		}
		if a.transport.at(b.at) != nil {
			t.Error("a closed connection keeps an address")
		}
	})
}

// TestAMediaNodeSendsManyStreams: 4,096 are heard, at a bounded cost, and one more ends the connection.
func TestAMediaNodeSendsManyStreams(t *testing.T) {
	const streams = 4096
	onCable(t, func(t *testing.T, net *cable, a, b *mediaNode) {
		atA, atB := join(a, b)
		up(t, atA, atB)
		synctest.Wait()
		before := heap()
		for i := range uint32(streams) {
			ssrc := 1000 + i
			atA.send(ssrc, 1)
			atA.report(ssrc)
			if i%1000 == 0 {
				synctest.Wait()
				net.log(b.at)
			}
		}
		synctest.Wait()
		net.log(b.at)
		const most = 16 << 20
		cost := heap() - before
		t.Logf("%d streams and their reports cost both ends %d KiB", streams, cost>>10)
		if cost > most {
			t.Errorf("the streams of a media node cost %d KiB, want %d at most", cost>>10, most>>10)
		}
		_, reports := atB.heard(1000)
		if ssrcs := atB.got.heard(); ssrcs != streams || reports != streams || atB.got.state() != Connected {
			t.Fatalf("%d streams and %d reports were heard, want %d; the connection is %v", ssrcs, reports, streams, atB.got.state())
		}
		atA.send(1, 1)
		pass(2 * watchEvery)
		if ssrcs := atB.got.heard(); ssrcs != streams || atB.got.state() != Failed {
			t.Errorf("after one SSRC too many %d streams are heard, and the connection is %v", ssrcs, atB.got.state())
		}
	})
}

func heap() int {
	runtime.GC()
	runtime.GC() // Pools keep what is in them for one collection more.
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	return int(memory.HeapAlloc)
}

// TestOneBadPacketEndsOneKeyedConnection: the node's clients are read on.
func TestOneBadPacketEndsOneKeyedConnection(t *testing.T) {
	onCable(t, func(t *testing.T, net *cable, a, b *mediaNode) {
		c := net.node(3)
		atA, atB := join(a, b)
		other, atC := join(a, c)
		up(t, atA, atB)
		up(t, other, atC)
		atB.send(deadlySSRC, 1)
		atC.send(7, 1)
		pass(2 * watchEvery)
		if n, _ := other.heard(7); n != 1 || atA.got.state() != Failed || other.got.state() != Connected {
			t.Errorf("the other connection has heard %d packets; the connections are %v and %v", n, atA.got.state(), other.got.state())
		}
	})
}
