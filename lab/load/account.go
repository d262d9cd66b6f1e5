package load

import (
	"context"
	"math"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/holdfast-rtc/holdfast/lab/measure"
)

// accountInterval is how much CPU time a killed process may take with it.
const accountInterval = time.Second

// account adds up the CPU time of the cluster's processes over all their runs.
type account struct {
	cluster Cluster // nil: only this process
	order   []string
	runs    map[int]*processRun // by pid
	self    processRun
}

type processRun struct {
	name        string
	first, last time.Duration // of CPU
}

func newAccount(cluster Cluster) *account {
	return &account{cluster: cluster, runs: make(map[int]*processRun)}
}

// run reads until ctx ends, and once more then.
func (a *account) run(ctx context.Context) error {
	a.self.first, _ = cpuTime(os.Getpid())
	a.read(ctx, true)
	tick := time.NewTicker(accountInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			a.read(context.WithoutCancel(ctx), false)
			a.self.last, _ = cpuTime(os.Getpid())
			return nil
		case <-tick.C:
			a.read(ctx, false)
		}
	}
}

// read reads every process once. All that a process used which started during the run counts.
func (a *account) read(ctx context.Context, first bool) {
	if a.cluster == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, accountInterval)
	defer cancel()
	status, err := a.cluster.Status(ctx)
	if err != nil {
		return // it is busy, or gone: the next reading tells
	}
	for _, node := range status.Nodes {
		if node.Pid == 0 {
			continue
		}
		used, err := cpuTime(node.Pid)
		if err != nil {
			continue // it has ended
		}
		run := a.runs[node.Pid]
		if run == nil {
			run = &processRun{name: node.Name}
			if first {
				run.first = used
			}
			a.runs[node.Pid] = run
			if !slices.Contains(a.order, node.Name) {
				a.order = append(a.order, node.Name)
			}
		}
		run.last = used
	}
}

func (a *account) report(elapsedSeconds float64) []ProcessCPU {
	all := []ProcessCPU{}
	for _, name := range a.order {
		var used time.Duration
		for _, run := range a.runs {
			if run.name == name {
				used += run.last - run.first
			}
		}
		all = append(all, ProcessCPU{Process: name, CPUSeconds: round2(used.Seconds()), Cores: share(used, elapsedSeconds)})
	}
	return all
}

func (a *account) generator(lives []life, elapsedSeconds float64) Generator {
	used := a.self.last - a.self.first
	g := Generator{
		CPUSeconds: round2(used.Seconds()), Cores: share(used, elapsedSeconds),
		ResidentBytes: residentBytes(), Goroutines: runtime.NumGoroutine(),
	}
	for _, one := range lives {
		g.LongestDelayMs = max(g.LongestDelayMs, measure.Milliseconds(one.stats.SendLag))
		g.FramesLeftOut += one.stats.FramesLeftOut
	}
	return g
}

func share(used time.Duration, elapsedSeconds float64) float64 {
	if elapsedSeconds <= 0 {
		return 0
	}
	return round2(used.Seconds() / elapsedSeconds)
}

func round2(x float64) float64 { return math.Round(x*100) / 100 }
