package cascade

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/internal/panics"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/sfu/egress"
	"github.com/holdfast-rtc/holdfast/sfu/transport"
)

var errUnreachable = errors.New("nobody answers there")

// places are media nodes that reach each other's Trunks by their control addresses.
type places struct {
	t *testing.T

	mu    sync.Mutex // guards the fields below
	nodes map[string]*place
	// before runs in a call before it is answered, and after when its answer is about to come.
	before, after func(*control.TrunkRequest)
	calls         int
	// lateEnds has calls answered whose callers have given up meanwhile.
	lateEnds bool
}

// place is one media node.
type place struct {
	peer   Peer
	at     netip.AddrPort
	told   netip.AddrPort // in place of at
	media  *transport.Transport
	socket *egress.Conn
	trunks *Trunks
	stop   func()
}

func newPlaces(t *testing.T) *places { return &places{t: t, nodes: map[string]*place{}} }

// start begins a process of a node at a free port, or at one that is given.
func (p *places) start(node ring.NodeID, boot pin.BootID, port int) *place {
	p.t.Helper()
	bound, err := egress.Listen(&net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port}, 2)
	if err != nil {
		p.t.Fatal(err)
	}
	n := &place{peer: Peer{Node: node, Boot: boot, Control: string(node) + ":7981"}, socket: egress.New(egress.Options{Gather: true, Segment: true}, bound...)}
	n.at = bound[0].LocalAddr().(*net.UDPAddr).AddrPort()
	guard, log := panics.New(), slog.New(slog.DiscardHandler)
	n.media = transport.New(n.socket, guard, log)
	n.trunks = NewTrunks(TrunksConfig{
		Self: n.peer, Media: n.media, Panics: guard, Log: log,
		Addresses: func() []netip.AddrPort {
			if n.told.IsValid() {
				return []netip.AddrPort{n.told}
			}
			return []netip.AddrPort{n.at}
		},
		Links: func(address string) (control.LinksClient, error) { return caller{places: p, to: address}, nil },
	})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { n.trunks.Run(ctx) })
	running.Go(func() { _ = n.media.Run(ctx) })
	n.stop = sync.OnceFunc(func() {
		cancel()
		_ = n.socket.Close()
		running.Wait()
		if guard.Count() > 0 {
			p.t.Errorf("%d panics at %s", guard.Count(), node)
		}
	})
	p.t.Cleanup(n.stop)
	p.mu.Lock()
	p.nodes[n.peer.Control] = n
	p.mu.Unlock()
	return n
}

// caller is a client of the node at a control address.
type caller struct {
	control.LinksClient

	places *places
	to     string
}

// Trunk is part of control.LinksClient.
func (c caller) Trunk(ctx context.Context, request *control.TrunkRequest, _ ...grpc.CallOption) (*control.TrunkReply, error) {
	p := c.places
	p.mu.Lock()
	to, before, after := p.nodes[c.to], p.before, p.after
	if p.lateEnds {
		ctx = context.WithoutCancel(ctx)
	}
	p.calls++
	p.mu.Unlock()
	if to == nil {
		return nil, errUnreachable
	}
	if before != nil {
		before(request)
	}
	reply, err := to.trunks.Answer(ctx, request)
	if after != nil {
		after(request)
	}
	return reply, err
}

func (p *places) called() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.calls
}

// with returns the trunk of a node with another one, which must come.
func (n *place) with(t *testing.T, other *place) *Trunk {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	trunk, err := n.trunks.With(ctx, other.peer)
	if err != nil {
		t.Fatal(err)
	}
	return trunk
}

func (t *Trunk) isDone() bool {
	select {
	case <-t.Done():
		return true
	default:
		return false
	}
}

// joined checks that both nodes have one living trunk, which is the same.
func joined(t *testing.T, a, b *place) (atA, atB *Trunk) {
	t.Helper()
	atA, atB = a.with(t, b), b.with(t, a)
	if atA.id != atB.id || atA.isDone() || atB.isDone() {
		t.Fatalf("the nodes have the trunks %s and %s (done: %v, %v)", atA.id, atB.id, atA.isDone(), atB.isDone())
	}
	return atA, atB
}

// TestNodesThatCallEachOtherAtOnceGetOneTrunk, with many callers at each, in whatever order the calls come.
func TestNodesThatCallEachOtherAtOnceGetOneTrunk(t *testing.T) {
	p := newPlaces(t)
	a, b := p.start("a", "1", 0), p.start("b", "1", 0)
	var mu sync.Mutex
	ids := map[*Trunk]bool{}
	var begin, asking sync.WaitGroup
	begin.Add(1)
	for range 20 {
		for from, to := range map[*place]*place{a: b, b: a} {
			asking.Go(func() {
				begin.Wait()
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				trunk, err := from.trunks.With(ctx, to.peer)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				ids[trunk] = true
			})
		}
	}
	begin.Done()
	asking.Wait()
	atA, atB := joined(t, a, b)
	if len(ids) != 2 || !ids[atA] || !ids[atB] {
		t.Errorf("the callers got %d ends, want the two of one trunk", len(ids))
	}
	if calls := p.called(); calls > 2+2*crossedTries {
		t.Errorf("%d calls were made", calls)
	}
}

// TestOfTwoCallsThatCrossOneCounts: both calls are on their way at once, and are answered in either order.
func TestOfTwoCallsThatCrossOneCounts(t *testing.T) {
	for _, first := range []ring.NodeID{"a", "b"} {
		t.Run(string(first)+" is answered first", func(t *testing.T) {
			p := newPlaces(t)
			p.lateEnds = true
			a, b := p.start("a", "1", 0), p.start("b", "1", 0)
			both := make(chan struct{})
			answered := make(chan struct{})
			arrived := make(chan struct{}, 2)
			var once, end sync.Once
			p.before = func(request *control.TrunkRequest) {
				select {
				case <-both:
					return
				default:
				}
				arrived <- struct{}{}
				if len(arrived) == 2 {
					once.Do(func() { close(both) })
				}
				<-both
				if ring.NodeID(request.GetFrom().GetNode()) != first {
					<-answered
				}
			}
			p.after = func(request *control.TrunkRequest) {
				if ring.NodeID(request.GetFrom().GetNode()) == first {
					end.Do(func() { close(answered) })
				}
			}
			var asking sync.WaitGroup
			for from, to := range map[*place]*place{a: b, b: a} {
				asking.Go(func() {
					if _, err := from.trunks.With(t.Context(), to.peer); err != nil {
						t.Errorf("a trunk of %s: %v", from.peer.Node, err)
					}
				})
			}
			asking.Wait()
			joined(t, a, b)
		})
	}
}

// TestACallThatComesLateHarmsNoTrunk: it was made before its maker took the other node's call.
func TestACallThatComesLateHarmsNoTrunk(t *testing.T) {
	p := newPlaces(t)
	a, b := p.start("a", "1", 0), p.start("b", "1", 0)
	var late *control.TrunkRequest
	p.after = func(request *control.TrunkRequest) { late = request }
	c := p.start("c", "1", 0)
	c.with(t, b) // It gives a request in the right form.
	p.after = nil
	atA, atB := joined(t, a, b)
	late.From.Node, late.From.Control = "a", a.peer.Control
	reply, err := b.trunks.Answer(t.Context(), late)
	if err != nil || !reply.GetCrossed() {
		t.Errorf("a late call is answered with %v %v", reply, err)
	}
	if againA, againB := joined(t, a, b); againA != atA || againB != atB {
		t.Error("a late call has replaced the trunk")
	}
}

// TestACallForAnotherBootIsRefused, and says so, as does one of a former process.
func TestACallForAnotherBootIsRefused(t *testing.T) {
	p := newPlaces(t)
	a, b := p.start("a", "1", 0), p.start("b", "2", 0)
	for _, boot := range []pin.BootID{"1", "3"} {
		other := b.peer
		other.Boot = boot
		if _, err := a.trunks.With(t.Context(), other); !errors.Is(err, ErrOtherBoot) {
			t.Errorf("a trunk with boot %s: %v", boot, err)
		}
	}
	joined(t, a, b)
	former := b.peer
	former.Boot = "1"
	if _, err := a.trunks.With(t.Context(), former); !errors.Is(err, ErrOtherBoot) {
		t.Errorf("a trunk with the former process: %v", err)
	}
	for peer, want := range map[Peer]error{a.peer: errItself, {Node: "x", Boot: "1", Control: "x:1"}: errUnreachable} {
		if _, err := a.trunks.With(t.Context(), peer); !errors.Is(err, want) {
			t.Errorf("a trunk with %s: %v, want %v", peer.Node, err, want)
		}
	}
}

// TestANodeThatIsSilentIsPassedOver for a minute: its control port answers, and its media sockets do not.
func TestANodeThatIsSilentIsPassedOver(t *testing.T) {
	p := newPlaces(t)
	a, b := p.start("a", "1", 0), p.start("b", "1", 0)
	nobody, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer nobody.Close()
	b.told = nobody.LocalAddr().(*net.UDPAddr).AddrPort()
	a.told = b.told // Else b reaches a, which then knows where b is.
	brief, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := a.trunks.With(brief, b.peer); !errors.Is(err, context.Canceled) {
		t.Fatalf("who does not wait is told %v", err)
	}
	if _, err := a.trunks.With(t.Context(), b.peer); !errors.Is(err, ErrPassedOver) {
		t.Fatalf("a silent node: %v", err)
	}
	calls := p.called()
	if _, err := a.trunks.With(t.Context(), b.peer); !errors.Is(err, ErrPassedOver) || p.called() != calls {
		t.Errorf("a silent node is called again at once: %v", err)
	}
	a.told, b.told = netip.AddrPort{}, netip.AddrPort{}
	eventually(t, "the other node no longer tries", func() bool {
		b.trunks.mu.Lock()
		defer b.trunks.mu.Unlock()
		return b.trunks.nodes["a"].attempt == nil
	})
	b.with(t, a) // Its call shows that it can be reached.
	joined(t, a, b)
}

// TestANewProcessGetsANewTrunk at the address of a former one, which died.
func TestANewProcessGetsANewTrunk(t *testing.T) {
	p := newPlaces(t)
	a, b := p.start("a", "1", 0), p.start("b", "1", 0)
	old, _ := joined(t, a, b)
	b.stop()
	again := p.start("b", "2", int(b.at.Port()))
	fresh := a.with(t, again)
	if fresh == old || !old.isDone() {
		t.Error("the new process has the trunk of the former one")
	}
	joined(t, a, again)
}

// TestADeadNodeIsNoticed by its silence, and no link begins on the trunk meanwhile.
func TestADeadNodeIsNoticed(t *testing.T) {
	p := newPlaces(t)
	a, b := p.start("a", "1", 0), p.start("b", "1", 0)
	trunk, _ := joined(t, a, b)
	p.mu.Lock()
	delete(p.nodes, b.peer.Control)
	p.mu.Unlock()
	b.stop()
	select {
	case <-trunk.Done():
	case <-time.After(patience):
		t.Fatal("the death of a node is not noticed")
	}
	if _, err := a.trunks.With(t.Context(), b.peer); !errors.Is(err, errUnreachable) {
		t.Errorf("a trunk with a dead node: %v", err)
	}
}

// TestUnusedTrunksEnd at both nodes, and those with a link stay.
func TestUnusedTrunksEnd(t *testing.T) {
	p := newPlaces(t)
	a, b := p.start("a", "1", 0), p.start("b", "1", 0)
	atA, atB := joined(t, a, b)
	atB.begin()
	for _, n := range []*place{a, b} {
		n.trunks.sweep(t.Context(), time.Now().Add(unusedFor-time.Second))
	}
	if atA.isDone() || atB.isDone() {
		t.Error("a trunk ends too soon")
	}
	for _, n := range []*place{a, b} {
		n.trunks.sweep(t.Context(), time.Now().Add(2*unusedFor))
	}
	if !atA.isDone() || atB.isDone() {
		t.Error("the unused end has not ended, or the used one has")
	}
	atB.leave()
	b.trunks.sweep(t.Context(), time.Now().Add(2*unusedFor))
	if !atB.isDone() {
		t.Error("an end that is not used any more has not ended")
	}
	joined(t, a, b)
}

// FuzzTrunk: whatever another node says when it asks for a trunk, or answers, opens none or one with that node, and no secret shows.
func FuzzTrunk(f *testing.F) {
	ours, _ := transport.NewKeys()
	f.Add("a", "1", "a:7981", "1", ours.Bytes(), "ufrag", "password-of-a", "127.0.0.1:9", "id")
	f.Add("", "", "", "1", []byte{}, "", "", "[::1%eth0]:0", "")
	f.Add("b", "1", "b:7981", "2", ours.Bytes(), "u:u", "p", "0.0.0.0:1", "")
	media := transport.New(deaf{closed: make(chan struct{})}, panics.New(), slog.New(slog.DiscardHandler))
	f.Fuzz(func(t *testing.T, node, boot, address, meant string, keys []byte, ufrag, password, at, known string) {
		log := &strings.Builder{}
		trunks := NewTrunks(TrunksConfig{
			Self: Peer{Node: "b", Boot: "1", Control: "b:7981"}, Media: media, Panics: panics.New(), Log: slog.New(slog.NewTextHandler(log, nil)),
			Addresses: func() []netip.AddrPort { return nil },
		})
		request := &control.TrunkRequest{
			From: &control.Place{Node: node, Boot: boot, Control: address}, Boot: meant, Keys: keys, Ufrag: ufrag, Password: password,
			Media: []string{at}, Known: []string{known},
		}
		for range 2 {
			if reply, err := trunks.Answer(t.Context(), request); (reply == nil) == (err == nil) {
				t.Fatalf("%v and %v", reply, err)
			} else if err != nil && len(password) > 8 && strings.Contains(err.Error(), password) && !strings.Contains(node+boot+address+meant+at, password) {
				t.Errorf("the error %v has the password", err)
			}
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		trunks.Run(ended)
		if len(password) > 8 && strings.Contains(log.String(), password) && !strings.Contains(node+boot+address+meant+at, password) {
			t.Error("the log has the password")
		}
		_, _ = readEnd(ufrag, password, []string{at, at})
	})
}
