package chaos

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
)

// TestCalm keeps the machine busy and gossip lossy for half a minute with detection as it is, which
// takes nobody for dead, and with one that is far too fast, which does: the check can fail.
func TestCalm(t *testing.T) {
	run := func(t *testing.T, haste float64, percent, burners int, lasts time.Duration) *Report {
		o := Defaults()
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
	// Chance has a part in who is taken for dead. So has how much too fast it is: with haste 40 an edge hears
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

// Each alarm is counted once, however often the log is read, and only what came after the beginning.
func TestAlarmsAreCountedOnce(t *testing.T) {
	began := time.Date(2027, 1, 2, 3, 4, 5, 0, time.UTC)
	heard := &alarms{lossy: map[string]bool{}, seen: map[string]struct{}{}}
	log := fmt.Sprintf(`{"time":%[1]q,"msg":"gossip datagrams are thrown away on purpose","percent":5}
{"time":%[1]q,"msg":"node down","node":"sfu-1"}
{"time":%[2]q,"msg":"member suspect","node":"sfu-1"}
{"time":%[2]q,"msg":"node down","node":"sfu-1"}
{"time":%[2]q,"msg":"room re-homing","room":"r"}
not a line of ours
{"time":%[2]q,"msg":"member dead","node":"sfu-1"}`, began.Add(-time.Second).Format(time.RFC3339Nano), began.Add(time.Second).Format(time.RFC3339Nano))
	for range 3 {
		for line := range strings.Lines(log) {
			heard.line("signaling-1", line, began)
		}
	}
	if !heard.lossy["signaling-1"] || len(heard.down) != 1 || len(heard.moved) != 1 || heard.suspicions != 1 || heard.gossip != 1 {
		t.Errorf("%+v", heard)
	}
	w := quiet()
	if v := noRoomMoved(w, &alarms{}); v.Outcome != Kept {
		t.Errorf("nothing happened: %+v", v)
	}
	if v := noRoomMoved(w, heard); v.Outcome != Broken {
		t.Errorf("a room was moved: %+v", v)
	}
	w.After.Held = slices.Clone(w.After.Held)
	w.After.Held[0].Epoch++
	if v := noRoomMoved(w, &alarms{}); v.Outcome != Broken {
		t.Errorf("an epoch grew: %+v", v)
	}
}

// quiet is a world with one room, in which nothing happens.
func quiet() *World {
	look := Look{Held: []Held{{Room: "r", Node: "sfu-1", Epoch: 7}}}
	return &World{Expect: Expect{Stays: true}, Before: look, After: look}
}

// A run on an idle machine, or without loss, proves nothing.
func TestCalmMustBeHard(t *testing.T) {
	c := &Chaos{options: Options{Percent: 5, Burners: 2}}
	lossy := &alarms{lossy: map[string]bool{"sfu-1": true}}
	for _, example := range []struct {
		share float64
		heard *alarms
		want  Outcome
	}{
		{0.99, lossy, Kept},
		{0.99, &alarms{}, Broken},
		{0.5, lossy, Broken},
		{-1, lossy, Unchecked},
	} {
		if v := c.wasBusy(example.share, example.heard); v.Outcome != example.want {
			t.Errorf("%.2f busy: %s, want %s", example.share, v.Outcome, example.want)
		}
	}
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
