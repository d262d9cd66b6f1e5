package chaos

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
)

// TestCalm keeps the machine busy and gossip lossy for half a minute with detection as it is, which
// takes nobody for dead, and with one that is far too fast, which does: the check can fail.
func TestCalm(t *testing.T) {
	run := func(t *testing.T, haste float64, percent, burners int, lasts time.Duration) *Report {
		o := defaults()
		o.Scenario, o.Rooms, o.Peers, o.Seed = Calm, 3, 2, 31
		o.Soak, o.Percent, o.Burners, o.Haste = lasts, percent, burners, haste
		env := make(map[string][]string)
		for _, node := range []string{"sfu-1", "sfu-2", "sfu-3", "signaling-1", "signaling-2"} {
			env[node] = CalmEnv(o)
		}
		cluster, store := startCluster(t, devcluster.Options{NodeEnv: env})
		o.Cluster, o.Pins = cluster.Client, store
		return runIn(t, t.Context(), o)
	}
	outcome := func(r *Report, name string) Summary {
		at := slices.IndexFunc(r.Verdicts, func(s Summary) bool { return s.Name == name })
		if at < 0 {
			t.Fatalf("no verdict %q", name)
		}
		return r.Verdicts[at]
	}
	t.Run("as it is", func(t *testing.T) {
		if r := run(t, 0, 5, 4, 30*time.Second); !r.Kept {
			t.Error("not every verdict was kept")
		}
	})
	// Chance has a part in who is taken for dead. So has how much too fast it is: with haste 40 a signaling node hears
	// none of the nodes in time, and then it believes none of them dead. A few of both are tried.
	t.Run("too tight", func(t *testing.T) {
		unseen := []string{"no false death", "nothing moved"}
		for _, haste := range []float64{10, 8, 12, 6, 10, 8, 12, 6, 10, 8} {
			r := run(t, haste, maxPercent, 32, 8*time.Second)
			unseen = slices.DeleteFunc(unseen, func(name string) bool { return !r.Kept && outcome(r, name).Broken > 0 })
			if len(unseen) == 0 {
				return
			}
		}
		t.Errorf("%q did not see it", unseen)
	})
}

// Burners end with the run that started them.
func TestBurnersEnd(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	b, err := startBurners(ctx, 1, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	b.end() // waits for each of them
	if ctx.Err() != nil {
		t.Fatal("they did not end when they were told to")
	}
	earlier, later := cpuTime{all: 100, idle: 50}, cpuTime{all: 200, idle: 75}
	if share := later.busySince(earlier); share != 0.75 {
		t.Errorf("busy for %g of the time, want 0.75", share)
	}
	if share := (cpuTime{}).busySince(cpuTime{}); share != -1 {
		t.Errorf("without figures: %g", share)
	}
}
