// Package chaos hurts a development cluster on purpose and judges from outside whether the cluster keeps its promises: by what
// every live SFU node says it holds, by the pins in the store, and by what people in the rooms receive.
//
// It gives a verdict on every invariant that a scenario can touch; one that could not be checked counts as broken. It measures how
// long people were without media and where that time went. Trials and time are bounded, and an interrupted run reports too. It uses
// processes, signals and the clients' side of the protocol, and looks into no process of the cluster.
//
// Chaos does a trial in chaos.go and hurts the cluster in act.go. What it looks at before and after stands with the verdict that needs it, such
// as rosters.go or ghosts.go. Begin with chaos.go, then world.go and verdict.go.
package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/backoff"
	"github.com/holdfast-rtc/holdfast/lab/devcluster"
	"github.com/holdfast-rtc/holdfast/lab/measure"
)

// peopleGCPercent saves CPU for the cluster on the same machine.
const peopleGCPercent = 400

const (
	joinLimit    = 90 * time.Second       // until everybody has joined
	lookInterval = 250 * time.Millisecond // between looks at the cluster
	calmLook     = 5 * time.Second        // where the looks must not disturb
)

type patience struct{ recover, settle time.Duration }

// Tests of builds that never recover wait for less.
func patient() patience { return patience{recover: 30 * time.Second, settle: 45 * time.Second} }

// Chaos is one run.
type Chaos struct {
	options Options
	cluster *devcluster.Client
	random  *rand.Rand
	page    string
	crowd   *crowd

	trialNumber int
	evidence    []Evidence
}

// New validates the options.
func New(o Options) (*Chaos, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if o.patience == (patience{}) {
		o.patience = patient()
	}
	return &Chaos{options: o, cluster: o.Cluster, random: rand.New(rand.NewPCG(o.Seed, 1))}, nil //nolint:gosec // repeatable on purpose
}

// Run lets people join, hurts the cluster, and reports. If ctx ends early, the report has the whole trials and says so.
func (c *Chaos) Run(ctx context.Context) (*Report, error) {
	s, _ := find(c.options.Scenario) // New has checked
	report := &Report{
		Version: ReportVersion, Scenario: s.name, Sentence: s.sentence,
		Began: time.Now(), Cores: runtime.NumCPU(), Parameters: c.options.parameters(),
	}
	status, err := c.cluster.Status(ctx)
	if err != nil {
		return nil, err
	}
	defer debug.SetGCPercent(debug.SetGCPercent(peopleGCPercent))
	c.page = status.Page
	c.options.countSentinels(status)
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

// A trial cut short by ctx is left out.
func (c *Chaos) trials(ctx context.Context, report *Report) error {
	until := time.Now().Add(c.options.Soak)
	for n := 1; ctx.Err() == nil; n++ {
		name := c.options.Scenario
		if s, _ := find(name); n > c.options.Trials && name != Soak || n > 1 && s.once {
			return nil
		}
		if name == Soak {
			if !time.Now().Before(until) || n > maxTrials {
				return nil
			}
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
		c.say("%s %s", trial.line(), trial.Note)
	}
	return nil
}

func (c *Chaos) trial(ctx context.Context, n int, name Name) (*Trial, error) {
	s, _ := find(name)
	w := &World{Expect: s.expect}
	if s.cut {
		w.Lasts = c.cutLasts()
	}
	if s.lasts != nil {
		w.Lasts = s.lasts(c)
	}
	if name == Calm {
		s.hold = c.options.Soak
	}
	if err := c.prepare(ctx, w, n, s); err != nil {
		return nil, err
	}
	began := time.Now()
	watch := c.watch(ctx, w)
	defer watch()
	if err := c.hurt(ctx, w, s); err != nil {
		return nil, err
	}
	whole, settled := c.convalesce(ctx, w, watch) // the verdicts show it
	c.awaitRosters(ctx, w)
	c.lookAtCapped(ctx, w)
	c.gatherLetters(ctx, w)
	var err error
	if w.Log, err = c.logs(ctx); err != nil {
		w.LogUnknown = err.Error()
	}
	w.Clients = c.crowd.clients(ctx, w)
	if w.Spread != nil {
		w.Spread.Crossing = c.crowd.crossing(ctx, w.Spread)
	}
	if w.Expect.Returns {
		if err := c.sendPeople(ctx, w); err != nil {
			return nil, err
		}
	}
	c.awaitGhosts(ctx, w)
	if s := c.brokenNow(w); s != "" {
		c.keep(ctx, s)
	}
	trial := &Trial{
		Number: n, Scenario: name, Began: began, Faults: w.Faults, Verdicts: Judge(w), Clients: measureGaps(w),
		WholeMs: measure.Milliseconds(whole), FullestShare: w.fullest(), HealthyPausesMs: measure.Milliseconds(w.healthyPause()), Messages: w.letterStates(),
	}
	c.note(w, trial, settled)
	return trial, nil
}

func (c *Chaos) note(w *World, trial *Trial, settled error) {
	if w.Expect.Calm {
		trial.Note = w.calmNote()
	}
	if w.Expect.Joins {
		trial.Note = w.joinsNote()
	}
	if w.Spread != nil {
		trial.Spread, trial.Note = w.Spread.Room, w.spreadNote()
	}
	if w.Expect.All { // the time from the first fault to the last move means nothing
		trial.Clients, trial.Note = nil, c.crowd.gapsNote()
	}
	if w.Alone != nil {
		trial.Note = strings.TrimSpace(trial.Note + " " + w.Alone.Error())
	}
	if settled != nil {
		trial.Note = strings.TrimSpace(trial.Note + " not settled: " + settled.Error())
	}
}

// hurt does what the scenario does, waits, and undoes it. Newcomers come all the while, and some after it.
func (c *Chaos) hurt(ctx context.Context, w *World, s scenario) error {
	finish := func() error { return nil }
	if s.expect.Joins {
		come, err := c.invite(ctx, w)
		if err != nil {
			return err
		}
		defer come.dismiss()
		finish = func() error { return come.finish(ctx, w) }
	}
	heal, err := c.strike(ctx, w, s)
	if err != nil {
		return err
	}
	c.recover(ctx, w, s.hold)
	backoff.Sleep(ctx, w.Lasts-time.Since(w.first()))
	w.Until = time.Now()
	return errors.Join(heal(ctx), finish())
}

// prepare arms last: people who go to new rooms may get a socket anywhere.
func (c *Chaos) prepare(ctx context.Context, w *World, n int, s scenario) error {
	c.trialNumber = n
	whole := func() error {
		if err := c.settled(ctx, w, time.Now()); err != nil {
			return fmt.Errorf("the cluster is not whole before the fault: %w", err)
		}
		return nil
	}
	if s.name != Crowd {
		if err := whole(); err != nil {
			return err
		}
		if err := c.crowd.spread(ctx, w.After); err != nil {
			return err
		}
	}
	if s.spreads {
		if err := c.crowd.spreadLarge(ctx); err != nil {
			return err
		}
	}
	if s.prepare != nil {
		if err := s.prepare(ctx, c, n); err != nil {
			return err
		}
	}
	if err := whole(); err != nil {
		return err
	}
	w.Alone = c.awaitStandbys(ctx)
	w.People = c.crowd.present()
	w.Capped, w.Cap, w.Line = c.crowd.capped, len(w.People[c.crowd.capped]), c.crowd.line
	if err := c.visit(ctx, w); err != nil {
		return err
	}
	w.Before = c.look(ctx)
	w.Spread = c.crowd.spreadRoom(w.Before)
	w.Clients = nil
	c.crowd.mark()
	return nil
}

// In a long cut, gossip on both sides gives up the other. aftermath is the wait for late effects.
const (
	shortestLongCut = 8 * time.Second
	longestLongCut  = 16 * time.Second
	aftermath       = 5 * time.Second
)

// A soak makes every other cut long.
func (c *Chaos) cutLasts() time.Duration {
	if c.options.Cut > 0 || c.options.Scenario != Soak || c.random.IntN(2) == 0 {
		return c.options.Cut
	}
	return shortestLongCut + time.Duration(c.random.Int64N(int64(longestLongCut-shortestLongCut)))
}

// convalesce waits until all is whole and returns how long that took. After a long fault it watches for late effects.
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

// recover waits until the struck rooms have moved and everybody receives; with hold, only for hold.
func (c *Chaos) recover(ctx context.Context, w *World, hold time.Duration) {
	if hold > 0 {
		backoff.Sleep(ctx, hold)
		return
	}
	limit := c.options.patience.recover
	if w.Expect.Smooth {
		limit *= 2 // nobody misses anything meanwhile
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

// settled waits until every process runs, every room is on one node, and everybody receives everybody. w.After is the last look.
func (c *Chaos) settled(ctx context.Context, w *World, since time.Time) error {
	return poll(ctx, c.options.patience.settle, func() error {
		w.After = c.look(ctx)
		w.Received = c.crowd.receipts(ctx, since)
		for _, check := range []func(*World) Verdict{OneOwner, NoOrphan, OnePlace, receivesNow} {
			if v := check(w); v.Outcome != Kept {
				return fmt.Errorf("%s: %s", v.Name, v.first())
			}
		}
		return nil
	})
}

func (c *Chaos) watch(ctx context.Context, w *World) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	pauses, every := newPauses(), lookInterval
	if w.Expect.Calm {
		every = calmLook
	}
	var looks []Look
	var watching sync.WaitGroup
	watching.Go(func() { // a look may take longer than a pause
		for backoff.Sleep(ctx, every) {
			pauses.see(c.crowd.flows(), time.Now())
		}
	})
	watching.Go(func() {
		for backoff.Sleep(ctx, every) {
			look := c.look(ctx)
			c.askSome(ctx, w, &look, len(looks))
			if ctx.Err() == nil && len(looks) < maxLooks {
				looks = append(looks, look)
			}
		}
	})
	return sync.OnceFunc(func() {
		cancel()
		watching.Wait()
		w.Between, w.Pauses, w.Watched = looks, pauses.longest(), time.Now()
	})
}

const maxLooks = 1000

func (c *Chaos) say(format string, values ...any) {
	if c.options.Progress != nil {
		_, _ = fmt.Fprintf(c.options.Progress, format+"\n", values...)
	}
}

// poll retries until look succeeds, and returns its last error at the limit.
func poll(ctx context.Context, limit time.Duration, look func() error) error {
	deadline := time.Now().Add(limit)
	for {
		err := look()
		if err == nil || time.Now().After(deadline) || !backoff.Sleep(ctx, 100*time.Millisecond) {
			return err
		}
	}
}

const steadyLooks = 10

// steadily is poll for a state that holds for steadyLooks looks in a row.
func steadily(ctx context.Context, limit time.Duration, look func() error) error {
	looks := 0
	return poll(ctx, limit, func() error {
		looks++
		if err := look(); err != nil {
			looks = 0
			return err
		}
		if looks < steadyLooks {
			return errors.New("it has been so for a moment only")
		}
		return nil
	})
}
