// Package chaos hurts a development cluster on purpose, in one of a few named ways,
// and judges from outside whether what the cluster promises was kept: by what
// every live SFU node says it holds, by the pins in the store, and by what people in
// the rooms received.
//
// It promises a verdict on every invariant that a scenario can touch, each with what
// it saw; one that could not be checked counts as broken. It measures how long
// people were without media and where that time went, is bounded in trials and
// time, and reports also when it is interrupted. It knows processes, signals and the
// clients' side of the protocol; it looks into no process of the cluster.
package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-rtc/holdfast/backoff"
	"github.com/holdfast-rtc/holdfast/lab/devcluster"
	"github.com/holdfast-rtc/holdfast/lab/measure"
)

// joinLimit bounds the wait for everybody to be in, lookInterval is the time between looks.
const (
	joinLimit    = 90 * time.Second
	lookInterval = 250 * time.Millisecond
)

// patience bounds one trial's waits.
type patience struct{ recover, settle time.Duration }

// patient is what a run has. A busy machine takes a good part of it; a cluster that needs
// more has not recovered. Tests with builds that never recover have less.
func patient() patience { return patience{recover: 30 * time.Second, settle: 45 * time.Second} }

// Chaos is one run.
type Chaos struct {
	options Options
	cluster *devcluster.Client
	random  *rand.Rand
	page    string
	crowd   *crowd

	trialNumber int // of the trial that runs
	evidence    []Evidence
}

// New prepares a run with valid options.
func New(o Options) (*Chaos, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if o.patience == (patience{}) {
		o.patience = patient()
	}
	return &Chaos{options: o, cluster: o.Cluster, random: rand.New(rand.NewPCG(o.Seed, 1))}, nil //nolint:gosec // repeatable on purpose
}

// Run lets people join, hurts the cluster as often as wanted, and reports. The end
// of ctx cuts the run short; the report says so and has the trials that were whole.
func (c *Chaos) Run(ctx context.Context) (*Report, error) {
	report := &Report{
		Version: ReportVersion, Scenario: c.options.Scenario, Sentence: scenarios()[c.options.Scenario].sentence,
		Began: time.Now(), Cores: runtime.NumCPU(), Parameters: c.options.parameters(),
	}
	status, err := c.cluster.Status(ctx)
	if err != nil {
		return nil, err
	}
	c.page = status.Page
	if err := c.options.suits(status); err != nil {
		return nil, err
	}
	c.crowd = newCrowd(c)
	defer c.crowd.leave()
	rooms := len(c.options.homes(mediaNodes(status)))
	c.say("%d people join %d rooms, and %d browsers one more", rooms*c.options.Peers+c.options.Large, rooms+min(c.options.Large, 1), c.options.Browsers)
	if err := c.crowd.join(ctx, status); err != nil && ctx.Err() == nil {
		return nil, err
	}
	err = c.trials(ctx, report)
	report.Interrupted, report.Evidence = ctx.Err() != nil, c.evidence
	report.finish(time.Now())
	if report.Interrupted {
		return report, nil
	}
	return report, err
}

// trials hurts the cluster again and again. A trial that ctx cut short is left out.
func (c *Chaos) trials(ctx context.Context, report *Report) error {
	if c.options.Scenario == Calm {
		return c.calm(ctx, report)
	}
	until := time.Now().Add(c.options.Soak)
	for n := 1; ctx.Err() == nil; n++ {
		if c.options.Scenario == Soak {
			if !time.Now().Before(until) || n > maxTrials {
				return nil
			}
		} else if n > c.options.Trials {
			return nil
		}
		name := c.options.Scenario
		if name == Soak {
			faults := c.options.soakFaults()
			name = faults[c.random.IntN(len(faults))]
		}
		trial, err := c.trial(ctx, n, name)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // what a cut trial complains of is the cut
		}
		if err != nil {
			report.Failure = fmt.Sprintf("trial %d (%s): %v", n, name, err)
			return errors.New(report.Failure)
		}
		report.Trials = append(report.Trials, trial)
		c.say("%s", trial.line())
	}
	return nil
}

// trial is one fault from the calm before it to the calm after it.
func (c *Chaos) trial(ctx context.Context, n int, name Name) (*Trial, error) {
	s := scenarios()[name]
	w := &World{Expect: s.expect}
	c.trialNumber = n
	if s.prepare != nil {
		if err := s.prepare(ctx, c, n); err != nil {
			return nil, err
		}
	}
	calm := c.settled(ctx, w, time.Now())
	if calm == nil && name != Crowd {
		if err := c.crowd.spread(ctx, w.After); err != nil {
			return nil, err
		}
		calm = c.settled(ctx, w, time.Now())
	}
	if calm != nil {
		return nil, fmt.Errorf("the cluster is not whole before the fault: %w", calm)
	}
	w.Before = c.look(ctx)
	w.Clients = nil
	c.crowd.mark()

	began := time.Now()
	watch := c.watch(ctx, w)
	defer watch()
	heal, err := s.strike(ctx, c, w)
	if err != nil {
		return nil, err
	}
	c.recover(ctx, w, s.hold)
	backoff.Sleep(ctx, w.Lasts-time.Since(w.first()))
	w.Until = time.Now()
	if err := heal(ctx); err != nil {
		return nil, err
	}
	whole, settled := c.convalesce(ctx, w, watch) // its complaint shows in the verdicts
	logs := c.logs(ctx)
	if w.Deaths, err = c.deaths(ctx, w.first()); err != nil {
		w.DeathsUnknown = err.Error()
	}
	w.Clients = c.crowd.clients(ctx, w)
	if w.Expect.Returns {
		if err := c.sendPeople(ctx, w); err != nil {
			return nil, err
		}
	}
	if s := c.brokenNow(w); s != "" {
		c.keep(ctx, s)
	}
	trial := &Trial{
		Number: n, Scenario: name, Began: began, Faults: w.Faults, Verdicts: Judge(w), Clients: measureGaps(w, logs),
		WholeMs: measure.Milliseconds(whole), FullestShare: w.fullest(), HealthyPausesMs: measure.Milliseconds(w.healthyPause()),
	}
	if settled != nil {
		trial.Note = "not settled: " + settled.Error()
	}
	return trial, nil
}

// convalesce waits until all is whole again, and tells how long that took. What a long fault leaves behind shows
// late: after that everything is watched for a while more.
func (c *Chaos) convalesce(ctx context.Context, w *World, endWatch func()) (whole time.Duration, complaint error) {
	began := time.Now()
	if w.Lasts == 0 {
		endWatch()
	}
	complaint = c.settled(ctx, w, began)
	whole = time.Since(began)
	if w.Lasts > 0 {
		backoff.Sleep(ctx, aftermath)
		endWatch()
		complaint = c.settled(ctx, w, time.Now())
	}
	return whole, complaint
}

// recover waits until people have what the fault took from them: those whose room
// has to move, until it has; where nothing has to move, for the scenario's while.
func (c *Chaos) recover(ctx context.Context, w *World, hold time.Duration) {
	if hold > 0 {
		backoff.Sleep(ctx, hold)
		return
	}
	limit := c.options.patience.recover
	if w.Expect.Smooth {
		limit *= 2 // Nobody misses anything meanwhile, and the node takes its time.
	}
	err := poll(ctx, limit, func() error {
		if missing := c.crowd.missingMoves(w); missing != "" {
			return errors.New(missing)
		}
		return nil
	})
	if err == nil {
		since := time.Now()
		if err = c.crowd.everybodyReceives(ctx, since, min(evidenceAfter, c.options.patience.recover)); err != nil {
			c.keep(ctx, err.Error())
			err = c.crowd.everybodyReceives(ctx, since, c.options.patience.recover-time.Since(since))
		}
	}
	if err != nil && ctx.Err() == nil {
		w.Lacking = err.Error()
	}
}

// settled waits until the cluster is whole: every process runs, every room is on
// one node, everybody receives everybody. The last look is w.After.
func (c *Chaos) settled(ctx context.Context, w *World, since time.Time) error {
	return poll(ctx, c.options.patience.settle, func() error {
		w.After = c.look(ctx)
		w.Received = c.crowd.receipts(ctx, since)
		for _, check := range []func(*World) Verdict{OneOwner, NoOrphan, receivesNow} {
			if v := check(w); v.Outcome != Kept {
				return fmt.Errorf("%s: %s", v.Name, v.first())
			}
		}
		return nil
	})
}

// watch looks at the cluster and its people until it is ended.
func (c *Chaos) watch(ctx context.Context, w *World) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	pauses := newPauses()
	var looks []Look
	var watching sync.WaitGroup
	watching.Go(func() { // A look may take seconds, in which a pause could come and go.
		for backoff.Sleep(ctx, lookInterval) {
			pauses.see(c.crowd.flows(), time.Now())
		}
	})
	watching.Go(func() {
		for backoff.Sleep(ctx, lookInterval) {
			look := c.look(ctx)
			if ctx.Err() == nil && len(looks) < maxLooks {
				looks = append(looks, look)
			}
		}
	})
	return sync.OnceFunc(func() {
		cancel()
		watching.Wait()
		w.Between, w.Pauses = looks, pauses.longest()
	})
}

// maxLooks bounds what is kept of one trial; a wait of a minute makes 240.
const maxLooks = 1000

// say tells how the run goes.
func (c *Chaos) say(format string, values ...any) {
	if c.options.Progress != nil {
		_, _ = fmt.Fprintf(c.options.Progress, format+"\n", values...)
	}
}

// poll looks until there is no complaint, and returns the last one at the limit.
func poll(ctx context.Context, limit time.Duration, look func() error) error {
	deadline := time.Now().Add(limit)
	for {
		err := look()
		if err == nil || time.Now().After(deadline) || !backoff.Sleep(ctx, 100*time.Millisecond) {
			return err
		}
	}
}

func sortedKeys[K ~string, V any](m map[K]V) []K {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
