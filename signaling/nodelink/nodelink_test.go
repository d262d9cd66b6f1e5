package nodelink

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/internal/panics"
	"github.com/holdfast-rtc/holdfast/people/messaging"
	"github.com/holdfast-rtc/holdfast/people/presence"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const generous = 60 * time.Second

// views is gossip that the test writes.
type views struct{ now atomic.Pointer[cluster.View] }

func (v *views) View() *cluster.View { return v.now.Load() }

// store says that everybody is online but "nobody". First it is silent, broken and ignorant.
type store struct{ asked atomic.Int64 }

func (s *store) Ask(_ context.Context, users []string) (list []presence.Status, err error) {
	switch s.asked.Add(1) {
	case 1:
		return nil, errors.New("the store does not answer")
	case 2:
		panic("the store's answer broke")
	case 3:
		return []presence.Status{{User: users[0], State: presence.Unknown}}, nil
	}
	for _, user := range users {
		state := presence.Online
		if user == "nobody" {
			state = presence.Offline
		}
		list = append(list, presence.Status{User: user, State: state})
	}
	return list, nil
}

type town struct {
	t     testing.TB
	wrap  func(net.Listener) net.Listener
	key   control.ClusterKey
	views *views
	log   *slog.Logger
	nodes map[ring.NodeID]cluster.Node
}

func newTown(t testing.TB) *town {
	t.Helper()
	key, err := control.ParseClusterKey("0123456789abcdef0123456789abcdef-test")
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
	return &town{t: t, wrap: func(lis net.Listener) net.Listener { return lis }, key: key, views: &views{}, log: log, nodes: map[ring.NodeID]cluster.Node{}}
}

// node is one that serves and runs until stop or the test's end.
func (w *town) node(name string) (links *Links, stop func()) {
	w.t.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.t.Fatal(err)
	}
	self := messaging.Peer{ID: ring.NodeID(name), Boot: pin.NewBootID(time.Now())}
	pool := control.NewPool(w.key, control.DefaultConfig())
	guard := panics.New()
	links = New(self, pool, w.views, &store{}, guard, w.log)
	server := control.NewServer(w.key, guard, w.log)
	ctx, cancel := context.WithCancel(context.Background())
	var runs sync.WaitGroup
	runs.Go(func() { _ = links.Run(ctx) })
	runs.Go(func() { _ = server.Serve(ctx, w.wrap(lis), links.Register) })
	stop = sync.OnceFunc(func() { cancel(); runs.Wait(); pool.Close() })
	w.t.Cleanup(stop)
	w.nodes[self.ID] = cluster.Node{ID: self.ID, Boot: self.Boot, Role: cluster.RoleSignaling, Control: lis.Addr().String()}
	w.tell()
	return links, stop
}

func (w *town) tell() {
	next := &cluster.View{Signaling: map[ring.NodeID]cluster.Node{}}
	if now := w.views.View(); now != nil {
		next.Version = now.Version
	}
	next.Version++
	maps.Copy(next.Signaling, w.nodes)
	w.views.now.Store(next)
}

// reader answers for everything that comes.
type reader struct {
	*messaging.Client

	got chan messaging.Message
}

func (l *Links) reader(user messaging.UserID) *reader {
	r := &reader{got: make(chan messaging.Message, 1000)}
	r.Client = &messaging.Client{User: user, Tell: func(messaging.Status) {}, Hand: func(m messaging.Message) { r.got <- m }}
	l.Open(r.Client)
	return r
}

func (w *town) next(l *Links, r *reader) messaging.Message {
	w.t.Helper()
	select {
	case m := <-r.got:
		l.Received(r.Client, m.From, m.Stream, m.Seq)
		return m
	case <-time.After(generous):
		w.t.Fatal("no message came")
		return messaging.Message{}
	}
}

func (w *town) wait(states chan messaging.Status, want messaging.State) {
	w.t.Helper()
	for {
		select {
		case s := <-states:
			if s.State == want {
				return
			}
			if s.State != messaging.StateAccepted {
				w.t.Fatalf("state %s, want %s", s.State, want)
			}
		case <-time.After(generous):
			w.t.Fatalf("nobody said %s", want)
		}
	}
}

// TestMessagesPassBetweenNodes: whoever the directory is, in order, past the death of a node.
func TestMessagesPassBetweenNodes(t *testing.T) {
	w := newTown(t)
	a, _ := w.node("a")
	b, _ := w.node("b")
	_, stop := w.node("c")
	states := make(chan messaging.Status, 1000)
	sender := &messaging.Client{User: "ada", Hand: func(messaging.Message) {}, Tell: func(s messaging.Status) { states <- s }}
	a.Open(sender)
	const users = 12
	var readers [users]*reader
	for i := range readers {
		readers[i] = b.reader(messaging.UserID(fmt.Sprint("user-", i)))
	}
	seq := uint64(0)
	send := func(to string) {
		seq++
		m := messaging.Message{From: "ada", Name: "Ada", Stream: "s", Seq: seq, Kind: "text", Body: []byte(`"hello"`), At: 1}
		if err := a.Submit(sender, messaging.UserID(to), m); err != nil {
			t.Fatal(err)
		}
	}
	round := func() {
		for i := range readers {
			send(fmt.Sprint("user-", i))
			send(fmt.Sprint("user-", i))
			for range 2 {
				if m := w.next(b, readers[i]); m.Seq == 0 || string(m.Body) != `"hello"` {
					t.Fatalf("got %+v", m)
				}
				w.wait(states, messaging.StateDelivered)
			}
		}
	}
	round()
	stop()
	delete(w.nodes, "c")
	w.tell()
	round()
	send("nobody")
	w.wait(states, messaging.StateOffline)
}

// TestANodeThatWasTakenForDead has its clients told what others of their users got meanwhile.
func TestANodeThatWasTakenForDead(t *testing.T) {
	w := newTown(t)
	a, _ := w.node("a")
	b, _ := w.node("b")
	c, _ := w.node("c")
	states := make(chan messaging.Status, 1000)
	sender := &messaging.Client{User: "ada", Hand: func(messaging.Message) {}, Tell: func(s messaging.Status) { states <- s }}
	a.Open(sender)
	laptop, phone := c.reader("bob"), b.reader("bob")
	send := func(seq uint64) {
		if err := a.Submit(sender, "bob", messaging.Message{From: "ada", Stream: "s", Seq: seq, Kind: "text", Body: []byte(`"hello"`)}); err != nil {
			t.Fatal(err)
		}
		if m := w.next(c, laptop); m.Seq != seq {
			t.Fatalf("the laptop got %d, want %d", m.Seq, seq)
		}
		w.wait(states, messaging.StateDelivered)
	}
	send(1)
	if m := w.next(b, phone); m.Seq != 1 {
		t.Fatalf("the phone got %d, want 1", m.Seq)
	}
	gone := w.nodes["b"]
	delete(w.nodes, "b")
	w.tell()
	for seq := uint64(2); seq <= 40; seq++ {
		send(seq)
	}
	w.nodes["b"] = gone
	w.tell()
	send(41)
	for seq, last := uint64(2), uint64(1); seq <= 41; {
		m := w.next(b, phone)
		if m.Seq > last+1 {
			t.Fatalf("the phone got %d after %d", m.Seq, last)
		}
		last = max(last, m.Seq)
		seq = last + 1
	}
}

func TestAnotherRunAndNonsenseAreRefused(t *testing.T) {
	w := newTown(t)
	a, _ := w.node("a")
	pool := control.NewPool(w.key, control.DefaultConfig())
	defer pool.Close()
	client, err := pool.Messages(w.nodes["a"].Control)
	if err != nil {
		t.Fatal(err)
	}
	other := encodeRun(messaging.Peer{ID: "b", Boot: "1"})
	for _, batch := range []*control.MessageBatch{
		{From: other, To: other},
		{From: other},
		{From: other, To: encodeRun(a.self), Frames: []*control.MessageFrame{{}}},
		{From: other, To: encodeRun(a.self), Frames: []*control.MessageFrame{
			{Frame: &control.MessageFrame_Register{Register: &control.MessageRegister{Here: []byte("short")}}},
		}},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), generous)
		stream, err := client.Exchange(ctx)
		if err == nil {
			_ = stream.Send(batch) // its error is that of RecvMsg
			err = stream.RecvMsg(new(control.MessagesEnd))
		}
		if err == nil || ctx.Err() != nil {
			t.Errorf("%v is answered %v", batch, err)
		}
		cancel()
	}
	if got := a.Counters().Malformed; got != 3 {
		t.Errorf("%d frames are counted as malformed, want 3", got)
	}
}

func frames() []messaging.Frame {
	batch := messaging.Batch{Number: 3, Origin: messaging.Peer{ID: "a", Boot: "1"}, To: "bob", Messages: []messaging.Message{
		{From: "ada", Name: "Ada", Stream: "s", Seq: 4, Kind: "text", Body: []byte("x"), Room: "r", At: 5},
	}}
	kept := batch
	kept.Previous, kept.Ages = 2, []time.Duration{3 * time.Second}
	boots := []pin.BootID{"1", "2"}
	return []messaging.Frame{
		messaging.Route{Batch: batch, View: 7, Overdue: true, Hops: 1},
		messaging.Deliver{Batch: batch, Holders: boots},
		messaging.Deliver{Batch: kept, Holders: boots, View: 7},
		messaging.Receipt{Number: 3, To: "bob", Outcome: messaging.OutcomeBusy, Holders: boots},
		messaging.Receipt{Number: 3, To: "bob", Outcome: messaging.OutcomeBehind, Holders: boots, View: 7, Level: 1},
		messaging.Miss{Number: 3, To: "bob", Unsettled: true},
		messaging.Register{Number: 1, Session: 2, View: 3, Complete: true, Here: []messaging.Key{{1}}, Gone: []messaging.Key{{2}, {3}}},
		messaging.Registered{Number: 9},
		messaging.Resync{Session: 4},
	}
}

func TestFramesRoundTrip(t *testing.T) {
	for _, f := range frames() {
		if got, err := decode(encode(f)); err != nil || !reflect.DeepEqual(got, f) {
			t.Errorf("%+v comes back as %+v (%v)", f, got, err)
		}
	}
}

func TestAFrameOfALaterVersionIsPassedOver(t *testing.T) {
	var later control.MessageFrame
	if err := proto.Unmarshal(protowire.AppendBytes(protowire.AppendTag(nil, 900, protowire.BytesType), []byte("?")), &later); err != nil {
		t.Fatal(err)
	}
	if _, err := decode(&later); !errors.Is(err, errUnknownKind) || errors.Is(err, errMalformed) {
		t.Errorf("decode = %v, want errUnknownKind: its stream goes on", err)
	}
}

// FuzzDecode: what is accepted is within the bounds, encodes again, and does not break a node.
func FuzzDecode(f *testing.F) {
	for _, frame := range frames() {
		text, err := proto.Marshal(encode(frame))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	self := messaging.Peer{ID: "a", Boot: "1"}
	f.Fuzz(func(t *testing.T, text []byte) {
		var in control.MessageFrame
		if proto.Unmarshal(text, &in) != nil {
			return
		}
		frame, err := decode(&in)
		if err != nil {
			return
		}
		again, err := decode(encode(frame))
		if err != nil || !reflect.DeepEqual(again, frame) {
			t.Fatalf("%+v comes back as %+v (%v)", frame, again, err)
		}
		links := New(self, nil, &views{}, &store{}, panics.New(), slog.New(slog.DiscardHandler))
		links.Open(&messaging.Client{User: "bob", Hand: func(messaging.Message) {}, Tell: func(messaging.Status) {}})
		links.Handle(messaging.Peer{ID: "b", Boot: "2"}, frame)
		links.Tick()
	})
}
