package sfu

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/sfu/cascade"
	"github.com/holdfast-rtc/holdfast/sfu/spread"
)

var errWire = errors.New("the wire is cut")

// wire is a stream between two processes of the model: ordered, without loss until it is cut.
type wire[Up, Down proto.Message] struct {
	ctx      context.Context
	cut      context.CancelFunc
	up       chan Up // closed by CloseSend
	down     chan Down
	answered chan struct{} // closed when the serving side has returned
	once     sync.Once
}

func newWire[Up, Down proto.Message](ctx context.Context) *wire[Up, Down] {
	ctx, cut := context.WithCancel(ctx)
	return &wire[Up, Down]{ctx: ctx, cut: cut, up: make(chan Up, 1024), down: make(chan Down, 1024), answered: make(chan struct{})}
}

// near is the calling side of a wire, and far the serving one.
type (
	near[Up, Down proto.Message] struct {
		grpc.ClientStream

		*wire[Up, Down]
	}
	far[Up, Down proto.Message] struct {
		grpc.ServerStream

		*wire[Up, Down]
	}
)

func (n near[Up, Down]) Context() context.Context { return n.ctx }
func (f far[Up, Down]) Context() context.Context  { return f.ctx }

func (n near[Up, Down]) Send(m Up) error {
	select {
	case n.up <- proto.CloneOf(m):
		return nil
	case <-n.answered:
		return io.EOF
	case <-n.ctx.Done():
		return status.FromContextError(n.ctx.Err()).Err()
	}
}

func (n near[Up, Down]) CloseSend() error {
	n.once.Do(func() { close(n.up) })
	return nil
}

func (n near[Up, Down]) Recv() (none Down, err error) {
	select {
	case m := <-n.down:
		return m, nil
	default:
	}
	select {
	case m := <-n.down:
		return m, nil
	case <-n.answered:
		select {
		case m := <-n.down:
			return m, nil
		default:
			return none, io.EOF
		}
	case <-n.ctx.Done():
		return none, status.FromContextError(n.ctx.Err()).Err()
	}
}

func (f far[Up, Down]) Send(m Down) error {
	select {
	case f.down <- proto.CloneOf(m):
		return nil
	case <-f.ctx.Done():
		return status.FromContextError(f.ctx.Err()).Err()
	}
}

func (f far[Up, Down]) Recv() (none Up, err error) {
	select {
	case m, open := <-f.up:
		if !open {
			return none, io.EOF
		}
		return m, nil
	case <-f.ctx.Done():
		return none, status.FromContextError(f.ctx.Err()).Err()
	}
}

// idleMedia carries nothing, for as long as the link lasts.
type idleMedia struct{}

func (idleMedia) Run(ctx context.Context, _ func(*control.LinkMessage) error) error {
	<-ctx.Done()
	return ctx.Err()
}
func (idleMedia) Take(*control.LinkMessage)                      {}
func (idleMedia) Figures() (sent, received *control.LinkFigures) { return nil, nil }

// process is a media node of the model.
type process struct {
	world *world
	node  *Node
	alive context.Context
	kill  context.CancelFunc
	ended sync.WaitGroup
}

// startProcess runs a node without its sockets' readers: rooms, people and links are as in production, media are not carried.
func (w *world) startProcess(name string) *process {
	cfg := DefaultConfig()
	cfg.Node, cfg.Boot, cfg.Loopback, cfg.Control = ring.NodeID(name), pin.BootID("1769000000000-"+name), true, name
	cfg.Limits.PeersPerRoom, cfg.Grace = modelCap, modelGrace
	p := &process{world: w}
	cfg.Links = func(at string) (control.LinksClient, error) { return wiredLinks{from: p, to: at}, nil }
	cfg.Candidates = func(ring.RoomID) []spread.Candidate { return w.candidates(name) }
	node, err := New(cfg, w, slog.New(slog.NewTextHandler(w.history, &slog.HandlerOptions{Level: slog.LevelInfo})))
	if err != nil {
		w.t.Fatal(err)
	}
	node.join = func(context.Context, cascade.Peer, cascade.LinkConfig) (linkMedia, error) { return idleMedia{}, nil }
	p.node = node
	p.alive, p.kill = context.WithCancel(context.Background())
	p.ended.Go(func() {
		defer close(node.stopped)
		var rooms sync.WaitGroup
		defer rooms.Wait()
		for {
			select {
			case r := <-node.starting:
				rooms.Go(func() { node.serve(p.alive, r) })
			case <-p.alive.Done():
				return
			}
		}
	})
	return p
}

// stop ends the process: all its streams break first.
func (p *process) stop(t testing.TB) {
	p.kill()
	p.ended.Wait()
	p.node.closers.Wait()
	if err := p.node.socket.Close(); err != nil {
		t.Error(err)
	}
}

// takesRooms is false for a dead process and for one that drains: rooms are moved elsewhere.
func (p *process) takesRooms() bool { return p.alive.Err() == nil && !p.node.DrainState().Draining }

// wiredLinks is how one process reaches the links of another one.
type wiredLinks struct {
	control.LinksClient

	from *process
	to   string
}

func (l wiredLinks) Link(ctx context.Context, _ ...grpc.CallOption) (grpc.BidiStreamingClient[control.LinkMessage, control.LinkMessage], error) {
	w := l.from.world
	to := w.reach(l.to)
	if to == nil || w.isCut(l.from, to) {
		return nil, status.Error(codes.Unavailable, errWire.Error())
	}
	line := newWire[*control.LinkMessage, *control.LinkMessage](ctx)
	w.lay(line.cut, l.from, to)
	to.ended.Go(func() {
		defer close(line.answered)
		_ = (&links{node: to.node}).Link(far[*control.LinkMessage, *control.LinkMessage]{wire: line})
	})
	return near[*control.LinkMessage, *control.LinkMessage]{wire: line}, nil
}

// cable is a stream in use.
type cable struct {
	cut  context.CancelFunc
	ends [2]*process // the second is nil for a stream of a signaling node
}

// lay notes a stream, so that it breaks with its ends.
func (w *world) lay(cut context.CancelFunc, from, to *process) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cables = append(w.cables, cable{cut: cut, ends: [2]*process{from, to}})
	if from.alive.Err() != nil || to != nil && to.alive.Err() != nil {
		cut()
	}
}

// pull cuts the streams of a process with another one; nil: all of its streams.
func (w *world) pull(one, other *process) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.cables {
		at := [2]bool{c.ends[0] == one || c.ends[1] == one, c.ends[0] == other || c.ends[1] == other}
		if at[0] && (other == nil || at[1]) {
			c.cut()
		}
	}
}

func (w *world) reach(name string) *process {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p := w.processes[name]; p != nil && p.alive.Err() == nil {
		return p
	}
	return nil
}

func (w *world) isCut(one, other *process) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.severed[[2]*process{one, other}] || w.severed[[2]*process{other, one}]
}

// candidates are the living nodes, all of them idle.
func (w *world) candidates(but string) (all []spread.Candidate) {
	for _, name := range w.names {
		if p := w.reach(name); p != nil && name != but {
			cfg := p.node.cfg
			all = append(all, spread.Candidate{
				Node: cfg.Node, Boot: cfg.Boot, Control: cfg.Control, Able: true,
				Ceiling: headroom.Egress{BitsPerSecond: cfg.CeilingBitsPerSecond, PacketsPerSecond: cfg.CeilingPacketsPerSecond},
			})
		}
	}
	return all
}
