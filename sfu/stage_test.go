package sfu

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/internal/testkit"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

// patience is the limit of every wait: generous, because the machine is shared.
const patience = 60 * time.Second

// ownerStub confirms every pin, or answers with an error that a test sets.
type ownerStub struct {
	mu      sync.Mutex
	err     error
	opening pin.Pin // what Opening says of every room
	during  func()  // runs once, while Confirm is being asked
	silent  bool    // the store is
}

func (o *ownerStub) StoreSteadyFor() time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.silent {
		return 0
	}
	return time.Hour
}

func (o *ownerStub) setSilent(silent bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.silent = silent
}

func (o *ownerStub) Opening(context.Context, ring.RoomID) (pin.Pin, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.opening, nil
}

func (o *ownerStub) Confirm(context.Context, ring.RoomID, pin.Pin) error {
	o.mu.Lock()
	err, during := o.err, o.during
	o.during = nil
	o.mu.Unlock()
	if during != nil {
		during()
	}
	return err
}

// meanwhile has during run while the next question is under way.
func (o *ownerStub) meanwhile(during func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.during = during
}

func (o *ownerStub) say(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.err = err
}

// stage is one node behind its control service.
type stage struct {
	t      testing.TB
	node   *Node
	owner  *ownerStub
	client control.MediaClient
	// control is where the node's services are.
	control string
	epoch   uint64
	stop    func() // ends the node; also done at the end of the test
}

// newStage starts a node, changed by the given edits to its configuration.
func newStage(t testing.TB, name string, edits ...func(*Config)) *stage {
	t.Helper()
	return newStageWith(t, name, testLog(t), edits...)
}

func newStageWith(t testing.TB, name string, log *slog.Logger, edits ...func(*Config)) *stage {
	t.Helper()
	cfg := DefaultConfig()
	cfg.Node, cfg.Boot, cfg.Loopback = ring.NodeID(name), pin.BootID("1769000000000-"+name), true
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	cfg.Control = listener.Addr().String()
	for _, edit := range edits {
		edit(&cfg)
	}
	owner := &ownerStub{}
	node, err := New(cfg, owner, log)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.WaitForHandlers(true))
	node.Register(server)
	ctx, cancel := context.WithCancel(t.Context())
	var ended sync.WaitGroup
	ended.Go(func() {
		if err := node.Run(ctx); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	ended.Go(func() { _ = server.Serve(listener) }) // It ends with an error of Stop's making.
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	stop := sync.OnceFunc(func() {
		cancel()
		_ = conn.Close()
		server.Stop()
		ended.Wait()
	})
	t.Cleanup(stop)
	return &stage{t: t, node: node, owner: owner, client: control.NewMediaClient(conn), control: listener.Addr().String(), epoch: 1769000000000, stop: stop}
}

// testLog writes what the node says into the test's log.
func testLog(t testing.TB) *slog.Logger {
	if _, fuzzing := t.(*testing.F); fuzzing {
		return slog.New(slog.DiscardHandler) // An F takes no log while its function runs.
	}
	w := &testWriter{t: t}
	t.Cleanup(w.close)
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// testWriter writes to a test's log as long as the test runs: a goroutine of Pion's
// may still say that its stream was closed.
type testWriter struct {
	mu sync.Mutex // guards t, nil when the test has ended
	t  testing.TB
}

// Write is part of io.Writer.
func (w *testWriter) Write(text []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.t == nil {
		return len(text), nil
	}
	return w.t.Output().Write(text)
}

func (w *testWriter) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.t = nil
}

// pin is a pin of this node.
func (s *stage) pin(epoch uint64) pin.Pin {
	return pin.Pin{Fence: pin.Fence{Epoch: epoch, Nonce: 7}, Node: s.node.cfg.Node, Boot: s.node.cfg.Boot, Control: s.node.cfg.Control}
}

// attachStream is one Attach stream.
type attachStream struct {
	t      testing.TB
	stream control.Media_AttachClient
	cancel context.CancelFunc
	fence  *control.Fence
	events chan *control.PeerEvent // closed when the stream has ended

	mu    sync.Mutex // guards slots
	slots []*control.Slot
}

// lastSlots is the newest slot table the node has sent.
func (e *attachStream) lastSlots() []*control.Slot {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.slots
}

// attachMessage is the Attach of a peer that may do everything.
func (s *stage) attachMessage(p pin.Pin, room, peer string, generation uint64) *control.PeerMessage {
	return &control.PeerMessage{Fence: control.FenceProto(p.Fence), Message: &control.PeerMessage_Attach{Attach: &control.Attach{
		Pin: control.PinProto(p), Room: room, Peer: &control.Peer{Id: peer, Identity: peer, Name: peer}, Generation: generation,
		Signaling: "signaling-7", CanPublish: true, CanSubscribe: true,
	}}}
}

// dial opens a stream and says the first message.
func (s *stage) dial(first *control.PeerMessage) *attachStream {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	stream, err := s.client.Attach(ctx)
	if err != nil {
		s.t.Fatal(err)
	}
	e := &attachStream{t: s.t, stream: stream, cancel: cancel, fence: first.GetFence(), events: make(chan *control.PeerEvent, 1024)}
	e.send(first)
	var ended sync.WaitGroup
	ended.Go(func() {
		defer close(e.events)
		for {
			event, err := stream.Recv()
			if err != nil {
				return
			}
			if table := event.GetSlots(); table != nil {
				e.mu.Lock()
				e.slots = table.GetSlots()
				e.mu.Unlock()
			}
			e.events <- event
		}
	})
	s.t.Cleanup(func() { cancel(); ended.Wait() })
	return e
}

// attach is dial of a peer of this node's present epoch, which must succeed.
func (s *stage) attach(room, peer string, generation uint64, edits ...func(*control.Attach)) (*attachStream, *control.Attached) {
	s.t.Helper()
	message := s.attachMessage(s.pin(s.epoch), room, peer, generation)
	for _, edit := range edits {
		edit(message.GetAttach())
	}
	e := s.dial(message)
	first := e.next()
	if first.GetAttached() == nil {
		s.t.Fatalf("the first event of %s is %v, want Attached", peer, first)
	}
	return e, first.GetAttached()
}

// refusal dials and gives the refusal it must get.
func (s *stage) refusal(first *control.PeerMessage) *control.Refused {
	s.t.Helper()
	e := s.dial(first)
	refused := e.next().GetRefused()
	if refused == nil {
		s.t.Fatal("the attach was not refused")
	}
	return refused
}

// send says a message under the stream's fence if it names no other.
func (e *attachStream) send(message *control.PeerMessage) {
	e.t.Helper()
	if message.GetFence() == nil {
		message.Fence = e.fence
	}
	if err := e.stream.Send(message); err != nil && !errors.Is(err, io.EOF) {
		e.t.Fatal(err)
	}
}

// next gives the next event; nil at the end of the stream.
func (e *attachStream) next() *control.PeerEvent {
	e.t.Helper()
	select {
	case event := <-e.events:
		return event
	case <-time.After(patience):
		e.t.Fatal("no event came")
		return nil
	}
}

// await gives the first event that is wanted; others are skipped.
func (e *attachStream) await(what string, wanted func(*control.PeerEvent) bool) *control.PeerEvent {
	e.t.Helper()
	limit := time.After(patience)
	for {
		select {
		case event, ok := <-e.events:
			if !ok {
				e.t.Fatalf("the stream ended before %s", what)
			}
			if wanted(event) {
				return event
			}
		case <-limit:
			e.t.Fatalf("%s never came", what)
		}
	}
}

// awaitEnd reads until the stream has ended and gives its last event.
func (e *attachStream) awaitEnd() *control.PeerEvent {
	e.t.Helper()
	var last *control.PeerEvent
	limit := time.After(patience)
	for {
		select {
		case event, ok := <-e.events:
			if !ok {
				return last
			}
			last = event
		case <-limit:
			e.t.Fatal("the stream does not end")
		}
	}
}

// rooms asks the node what it holds.
func (s *stage) rooms() *control.RoomsReply {
	s.t.Helper()
	reply, err := s.client.Rooms(s.t.Context(), &control.RoomsRequest{})
	if err != nil {
		s.t.Fatal(err)
	}
	return reply
}

// heldPeer is what the node says of a peer; nil when it does not have it.
func (s *stage) heldPeer(room, peer string) *control.HeldPeer {
	s.t.Helper()
	for _, r := range s.rooms().GetRooms() {
		for _, p := range r.GetPeers() {
			if r.GetRoom() == room && p.GetId() == peer {
				return p
			}
		}
	}
	return nil
}

func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	testkit.Eventually(t, what, holds)
}

// rosterIDs lists the peers of a roster.
func rosterIDs(roster []*control.Peer) string {
	ids := ""
	for _, p := range roster {
		ids += fmt.Sprintf("%s ", p.GetId())
	}
	return ids
}
