package chaos

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast-rtc/holdfast/internal/child"
	"github.com/holdfast-rtc/holdfast/lab/devcluster"
	"github.com/holdfast-rtc/holdfast/redisstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// startCluster starts a cluster for the test, and opens its store.
func startCluster(t *testing.T, o devcluster.Options) (*devcluster.Cluster, *redisstore.Store) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute) // the first one compiles
	defer cancel()
	cluster, err := devcluster.Start(ctx, o)
	if err != nil {
		t.Fatalf("start the cluster: %v", err)
	}
	t.Cleanup(cluster.Close)
	node, err := cluster.Node(ctx, "store")
	if err != nil {
		t.Fatal(err)
	}
	store, err := redisstore.Open("redis://"+node.Addresses[child.AddressStore], slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return cluster, store
}

// shortRun is one trial with a few synthetic people, as many as each node needs.
func shortRun(scenario Name, cluster *devcluster.Cluster, store Pins) Options {
	o := defaults()
	o.Scenario, o.Trials, o.Rooms, o.Peers, o.Seed = scenario, 1, 3, 2, 1
	o.Cluster, o.Pins = cluster.Client, store
	return o
}

// TestShortRuns hurts a cluster in each of the ways that TestBrokenBuilds uses. It asserts no
// times: the machine may be busy.
func TestShortRuns(t *testing.T) {
	cluster, store := startCluster(t, devcluster.Options{})
	for i, scenario := range []Name{Kill, Freeze, StoreKill, DoubleFault} {
		t.Run(string(scenario), func(t *testing.T) {
			o := shortRun(scenario, cluster, store)
			o.Seed += uint64(i)
			if scenario == DoubleFault {
				o.Trials = len(steps())
			}
			r := runIn(t, t.Context(), o)
			if !r.Kept || len(r.Trials) != o.Trials {
				t.Errorf("kept %t in %d trials, want %d", r.Kept, len(r.Trials), o.Trials)
			}
			s, _ := find(scenario)
			if s.expect.Moves && (r.Packets == nil || r.Packets.Streams.Count == 0 || r.Packets.Missing > 0) {
				t.Errorf("gaps: %+v", r.Packets)
			}
		})
	}
	t.Run("interrupted", func(t *testing.T) {
		o := shortRun(Kill, cluster, store)
		o.Trials, o.Seed = maxTrials, 9
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		o.Progress = progress(func(line string) {
			if strings.HasPrefix(line, "trial 1") {
				cancel()
			}
		})
		if r := runIn(t, ctx, o); !r.Interrupted || len(r.Trials) != 1 {
			t.Errorf("interrupted %t with %d trials, want the one that was whole", r.Interrupted, len(r.Trials))
		}
	})
}

// TestARoomOnThreeNodes loses one of them.
func TestARoomOnThreeNodes(t *testing.T) {
	for i, scenario := range []Name{BranchKill, OwnerKill, BranchFreeze, OwnerFreeze} {
		t.Run(string(scenario), func(t *testing.T) {
			t.Parallel()
			cluster, store := startCluster(t, devcluster.Options{})
			o := shortRun(scenario, cluster, store)
			o.Seed, o.Large = 20+uint64(i), leastSpread
			r := runIn(t, t.Context(), o)
			if !r.Kept || len(r.Trials) != 1 || r.Spread == nil || r.Spread.Streams.Count == 0 || r.Spread.Missing > 0 {
				t.Errorf("kept %t, gaps of the room on several nodes: %+v", r.Kept, r.Spread)
			}
		})
	}
}

// progress hears each line.
type progress func(line string)

func (p progress) Write(line []byte) (int, error) {
	p(string(line))
	return len(line), nil
}

func runIn(t *testing.T, ctx context.Context, o Options) *Report { //nolint:revive // t first, as everywhere in tests
	t.Helper()
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	r, err := c.Run(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	if err := r.WriteTable(&table); err != nil {
		t.Fatal(err)
	}
	t.Log(table.String())
	return r
}

// A crowd that the two survivors can take only when they share it: a room of four is charged with
// what it sends when it moves, some 1.5 Mbit/s; each survivor has one already, and has headroom for four or five more. One
// that opens is expected to send 8.5 Mbit/s.
const (
	crowdRooms = 6
	crowdPeers = 4
)

// narrowEnv is NodeEnv, with low ceilings on the survivors of a crowd.
func narrowEnv(scenario Name) map[string][]string {
	env := NodeEnv(scenario)
	if env != nil {
		env["sfu-2"] = []string{"HOLDFAST_EGRESS_BITS=8800000"}
		env["sfu-3"] = env["sfu-2"]
	}
	return env
}

// TestCrowd kills the node that has nearly all rooms.
func TestCrowd(t *testing.T) {
	cluster, store := startCluster(t, devcluster.Options{NodeEnv: narrowEnv(Crowd)})
	o := shortRun(Crowd, cluster, store)
	o.Rooms, o.Peers = crowdRooms, crowdPeers
	r := runIn(t, t.Context(), o)
	people := o.Trials * crowdRooms * crowdPeers
	if !r.Kept || r.Packets == nil || r.Packets.Clients.Count != people {
		t.Errorf("kept %t, want all of %d people back: %+v", r.Kept, people, r.Packets)
	}
	for _, trial := range r.Trials {
		if trial.FullestShare < 0.5 || trial.FullestShare > 1 {
			t.Errorf("the fullest survivor had %.2f of its ceiling, so the ceilings did not matter", trial.FullestShare)
		}
	}
}
