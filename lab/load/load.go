// Package load puts synthetic people into a cluster's rooms and measures joins, pauses, loss, the effect of a node's death, and
// their cost.
//
// It is bounded in time, people and memory, ends by itself, reports also when interrupted, and says how late it was itself:
// figures of a generator that could not keep up are not the cluster's. It uses lab/peer; of the cluster it knows only pids.
package load

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast-rtc/holdfast/internal/backoff"
	"github.com/holdfast-rtc/holdfast/lab/peer"
)

// settleLimit bounds the wait for everybody before the window.
const settleLimit = 15 * time.Second

// Load is one run.
type Load struct {
	options Options
	people  []*person // in the order of joining

	began    time.Time // set before the watchers start
	window   time.Time // start of the bitrates' window
	atWindow totals
}

// New validates the options.
func New(o Options) (*Load, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	stack, err := peer.NewStackOf(o.Video, o.Codec)
	if err != nil {
		return nil, err
	}
	l := &Load{options: o}
	// Rooms grow side by side.
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
	l.began = time.Now()
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
	watching.Go(func() error { return l.show(watched) })

	l.joinAll(ctx, func(p *person) { rooms.Go(func() { p.run(living) }) })
	l.settle(ctx)
	l.stay(ctx)
	end, sum, lives := time.Now(), l.totals(), l.lives()
	stopWatching()
	if err := watching.Wait(); err != nil {
		return nil, err
	}
	report := l.report(lives, sum, end, ctx.Err() != nil)
	report.CPU, report.Generator.ProcessCPU = cpu.report(report.ElapsedSeconds)
	return report, nil
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
	for limit := time.Now().Add(settleLimit); time.Now().Before(limit); {
		now := l.totals()
		if now.joined+now.gone >= len(l.people) || !backoff.Sleep(ctx, 100*time.Millisecond) {
			return
		}
	}
}

func (l *Load) stay(ctx context.Context) {
	l.window, l.atWindow = time.Now(), l.totals()
	for _, p := range l.people {
		p.firstNode = p.peer.Totals().Node
	}
	backoff.Sleep(ctx, l.options.Duration)
}
