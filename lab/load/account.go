package load

import (
	"context"
	"math"
	"os"
	"slices"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/backoff"
)

// A killed process's last CPU time is lost, up to accountInterval.
const accountInterval = time.Second

const itself = "load itself"

// account adds up the CPU time of the cluster's processes and of this one, over all their runs.
type account struct {
	cluster Cluster // nil: only this process
	order   []string
	runs    map[int]*processRun // by pid
}

type processRun struct {
	name        string
	first, last time.Duration // CPU time
}

func newAccount(cluster Cluster) *account {
	return &account{cluster: cluster, runs: make(map[int]*processRun)}
}

func (a *account) run(ctx context.Context) error {
	a.readAll(ctx, true)
	for backoff.Sleep(ctx, accountInterval) {
		a.readAll(ctx, false)
	}
	a.readAll(context.WithoutCancel(ctx), false)
	return nil
}

// All CPU time of a process that started during the run counts.
func (a *account) readAll(ctx context.Context, first bool) {
	a.read(os.Getpid(), itself, first)
	if a.cluster == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, accountInterval)
	defer cancel()
	status, err := a.cluster.Status(ctx)
	if err != nil {
		return // the next reading tells
	}
	for _, node := range status.Nodes {
		a.read(node.Pid, node.Name, first)
	}
}

func (a *account) read(pid int, name string, first bool) {
	used, err := cpuTime(pid)
	if pid == 0 || err != nil {
		return // it has ended
	}
	if a.runs[pid] == nil {
		a.runs[pid] = &processRun{name: name}
		if first {
			a.runs[pid].first = used
		}
		if !slices.Contains(a.order, name) {
			a.order = append(a.order, name)
		}
	}
	a.runs[pid].last = used
}

func (a *account) report(elapsedSeconds float64) (cluster []ProcessCPU, own ProcessCPU) {
	cluster = []ProcessCPU{}
	for _, name := range a.order {
		var used time.Duration
		for _, run := range a.runs {
			if run.name == name {
				used += run.last - run.first
			}
		}
		one := ProcessCPU{Process: name, CPUSeconds: round2(used.Seconds()), Cores: round2(used.Seconds() / max(elapsedSeconds, 0.1))}
		if name == itself {
			own = one
		} else {
			cluster = append(cluster, one)
		}
	}
	return cluster, own
}

func round2(x float64) float64 { return math.Round(x*100) / 100 }
