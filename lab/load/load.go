// Package load puts synthetic people into rooms of a cluster and measures what
// they live through: how long a join takes, how long a stream pauses, what is lost,
// how a node's death feels, and what all that costs.
//
// It promises to be bounded in time, people and memory, to end by itself, to
// report also when it is interrupted, and to say how late it was itself: figures of
// a generator that could not keep up are not the cluster's. It speaks the protocol
// of every client, through lab/peer; of the cluster behind it it knows only the pids
// of a development cluster, for their CPU time.
package load

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast-rtc/holdfast/lab/peer"
	"github.com/holdfast-rtc/holdfast/ring"
)

// settleLimit bounds the wait for everybody to be in, before the window begins.
const settleLimit = 15 * time.Second

// Load is one run.
type Load struct {
	options Options
	people  []*person // in the order in which they join

	mu       sync.Mutex // guards the fields below
	began    time.Time
	window   time.Time // when the window of the bitrates began
	atWindow totals
}

// New prepares a run with valid options.
func New(o Options) (*Load, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	stack, err := peer.NewStack(o.Video)
	if err != nil {
		return nil, err
	}
	l := &Load{options: o}
	// The first person of every room, then the second: rooms grow side by side.
	for i := range o.Peers {
		for room := range o.Rooms {
			p, err := newPerson(o, stack, room, i)
			if err != nil {
				return nil, err
			}
			l.people = append(l.people, p)
		}
	}
	return l, nil
}

// Run lets everybody join, stay and leave, and returns what was measured. If ctx ends early, the report says so.
func (l *Load) Run(ctx context.Context) (*Report, error) {
	living, leave := context.WithCancel(context.WithoutCancel(ctx))
	defer leave()
	var rooms sync.WaitGroup
	defer rooms.Wait()
	defer leave() // before the waiting

	cpu := newAccount(l.options.Cluster)
	var watching errgroup.Group
	watched, stopWatching := context.WithCancel(living)
	defer stopWatching()
	watching.Go(func() error { return cpu.run(watched) })
	egress := ceilings{options: l.options, nodes: make(map[ring.NodeID]*NodeEgress)}
	watching.Go(func() error { return egress.run(watched) })
	watching.Go(func() error { return l.show(watched) })
	watching.Go(func() error { return l.writeLines(watched) })

	l.begin()
	l.joinAll(ctx, func(p *person) { rooms.Go(func() { p.run(living) }) })
	l.settle(ctx)
	l.stay(ctx)
	end := time.Now()
	lives := l.lives()
	stopWatching()
	if err := watching.Wait(); err != nil {
		return nil, err
	}
	report := l.report(lives, end, ctx.Err() != nil)
	report.Nodes = egress.report()
	report.CPU, report.Generator = cpu.report(report.ElapsedSeconds), cpu.generator(lives, report.ElapsedSeconds)
	return report, nil
}

func (l *Load) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.began = time.Now()
}

func (l *Load) joinAll(ctx context.Context, start func(*person)) {
	tick := time.NewTicker(time.Duration(float64(time.Second) / l.options.JoinsPerSecond))
	defer tick.Stop()
	for i, p := range l.people {
		if i > 0 {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
		start(p)
	}
}

// settle waits until everybody is in or refused.
func (l *Load) settle(ctx context.Context) {
	limit := time.NewTimer(settleLimit)
	defer limit.Stop()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		now := l.totals()
		if now.joined+now.gone >= len(l.people) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-limit.C:
			return
		case <-tick.C:
		}
	}
}

func (l *Load) stay(ctx context.Context) {
	now, at := l.totals(), time.Now()
	l.mu.Lock()
	l.window, l.atWindow = at, now
	l.mu.Unlock()
	for _, p := range l.people {
		p.firstNode = p.peer.Totals().Node
	}
	timer := time.NewTimer(l.options.Duration)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// What goes wrong in a crowd is in the counts.
func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }
