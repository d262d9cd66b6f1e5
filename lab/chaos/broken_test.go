package chaos

import (
	"slices"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
)

// brokenBuild is a mutant, the scenario that must find it out, and the verdict that must say so.
// Without a verdict all must be kept: such a mutant is there to be compared with.
// anyVerdict is for what breaks one promise or another, by chance: two nodes to which one room was sent find out about each other
// within some 0.1 s, so that a look may come too late for "one room, one owner", while the room moves once too often or its people are apart.
const anyVerdict = "any"

type brokenBuild struct {
	mutant

	scenario Name
	verdict  string
	rooms    int // 0: as in every short run
}

// manyRooms are enough that two signaling nodes which choose by chance cannot agree on all of a dead
// node's third: one time in 256 they would.
const manyRooms = 24

// By default both signaling nodes would choose the same node for a room, and who opens a
// room would ask the store once more. Either hides the loss of the compare-and-set.
func undecided() []edit {
	return []edit{
		{
			"orchestrator", "		for id := range view.Ring.Successors(room) {",
			"		if avoid.boot != \"\" {\n			room += ring.RoomID(now.String())\n		}\n		for id := range view.Ring.Successors(room) {",
		},
		{"orchestrator", confirming, confirming + "	if room != \"\" {\n		return nil\n	}\n"},
	}
}

// hurried makes a scenario of the network shorter; it changes nothing in the product.
func hurried() edit {
	return edit{"lab/chaos", "hurtFor = 10 * time.Second", "hurtFor = 6 * time.Second"}
}

// Where to change what is more than a line.
const (
	confirming = "func (k *Keeper) Confirm(ctx context.Context, room ring.RoomID, p pin.Pin) error {\n"
	refreshing = "if (err != nil) != failing { // One line per change"
)

func brokenBuilds() []brokenBuild {
	return []brokenBuild{
		{mutant{"nodes are chosen by chance, and openings are not confirmed", undecided()}, Kill, "", manyRooms},
		{mutant{"and a plain SET stands where a compare-and-set should", append(undecided(), edit{
			"redisstore", "if stands ~= ARGV[1] then", "if false then",
		})}, Kill, anyVerdict, manyRooms},
		{mutant{"a node does not let go of a room that has a higher fence", []edit{
			{"sfu", "	if held && !r.pin().Fence.Less(higher.Fence) {", "	if held {"},
		}}, Freeze, "one room, one owner", 0},
		{mutant{"a re-homing lowers the epoch", []edit{
			{"orchestrator", "	return max(p.Fence.Epoch, s.of(room).Fence.Epoch) + 1", "	return p.Fence.Epoch - 1"},
		}}, Kill, "epochs only grow", 0},
		{mutant{"a death moves every room", []edit{
			{"signaling", "	for id, r := range h.byBoot[boot] {", "	for id, r := range h.rooms {"},
			{"failover", "			if room.Pin.Boot == boot {", "			if boot != \"\" {"},
			{"failover", "	if !f.gone(m.from.Boot) {", "	if m.from.Boot == \"\" {"},
		}}, Kill, "surgical", 0},
		{mutant{"nobody moves the rooms of a dead node: neither who has their people, nor the sweep, nor who joins", []edit{
			{"failover", "				lost = append(lost, room)\n", ""},
			{"failover", "	owned.Go(func() { f.sweepUntilDone(ctx) })\n", ""},
			{
				"orchestrator", "	if how, gone := view.Gone[p.Boot]; gone {\n		return \"its process is gone: \" + string(how), true",
				"	if _, gone := view.Gone[p.Boot]; gone {\n		return \"\", true",
			},
		}}, Kill, "no orphan", 0},
		{mutant{"a room moves once more after it has moved", []edit{{
			"failover", "	to, err := f.rehomer.Rehome(ctx, m.room.Room, m.from, m.room.Expect)\n",
			"	to, err := f.rehomer.Rehome(ctx, m.room.Room, m.from, m.room.Expect)\n" +
				"	if err == nil {\n		to, err = f.rehomer.Rehome(ctx, m.room.Room, to, m.room.Expect)\n	}\n",
		}}}, Kill, "moved once", 0},
		{mutant{"clients are not told that their room has moved", []edit{
			{"signaling", "		s.restart(\"moved\")\n", ""},
		}}, Kill, "everybody receives everybody", 0},
		{mutant{"a node that cannot refresh its pins closes its rooms", []edit{
			{"orchestrator", refreshing, `if err != nil {
				for _, h := range k.rooms.Held() {
					h.Pin.Node, h.Pin.Fence.Epoch = "nobody", h.Pin.Fence.Epoch+1
					k.rooms.Outrank(h.Room, h.Pin)
				}
			}
			` + refreshing},
			{"orchestrator", "RefreshEvery: 5 * time.Second, ", "RefreshEvery: time.Second, "},
		}}, StoreKill, "media needs no store", 0},
		{mutant{"neither edges nor nodes look at ceilings, and all rooms of a dead node go to one", []edit{
			{
				"orchestrator", "		for id := range view.Ring.Successors(room) {",
				"		if avoid.boot != \"\" {\n			room = \"one of them\"\n		}\n		for id := range view.Ring.Successors(room) {",
			},
			{"orchestrator", "	case !with.Fits(c.ceiling):", "	case c.ceiling == (headroom.Egress{}):"},
			{"orchestrator", "	case with.Share(c.ceiling) <= limit:", "	case with.Fits(with):"},
			{"headroom", "	return load.Plus(cost).Fits(ceiling) || Idle(load, ceiling)", "	return cost.Fits(cost)"},
		}}, Crowd, "no survivor over its ceiling", crowdRooms},
		{mutant{"a failpoint does nothing", []edit{
			{"failpoint", "		act(list[name])", "		act(list[\"not \"+name])"},
		}}, DoubleFault, "the fault happened", 0},
		{mutant{"gossip is too fast for the network, and signaling nodes believe it at once", []edit{
			{"cluster", "	probeInterval = 200 * time.Millisecond\n", "	probeInterval = 40 * time.Millisecond\n"},
			{"cluster", "	probeTimeout = 100 * time.Millisecond\n", "	probeTimeout = 20 * time.Millisecond\n"},
			{"failover", "		case beats >= f.config.BelieveAfter && answer >= f.config.AnswerWithin:", "		case beats >= answer:"},
			hurried(),
		}}, Delay, "no false death", 0},
		{mutant{"a lost packet stops its stream for six seconds", []edit{
			{
				"sfu/forward", "	sequence, ok := l.tracker.extend(p.header.sequence)\n",
				"	began, next := l.tracker.started, l.tracker.highest+1\n	sequence, ok := l.tracker.extend(p.header.sequence)\n",
			},
			{"sfu/forward", "	l.lastHeard = p.arrived\n", `	if p.arrived.Before(l.lastHeard) {
		return false
	}
	l.lastHeard = p.arrived
	if began && sequence > next {
		l.lastHeard = p.arrived.Add(6 * time.Second)
	}
`},
			hurried(),
		}}, Loss, "media goes on", 0},
		{mutant{"a node that was taken for dead gets no rooms when it is back", []edit{
			{"cluster", "	node.Load, node.Doubted = Load{}, false\n", "	node.Load, node.Doubted, node.Draining = Load{}, false, why == whyReturned\n"},
			{"lab/chaos", "returnLimit = 10 * time.Second", "returnLimit = 2 * time.Second"},
		}}, Partition, "back in service", 0},
	}
}

// brokenRuns are how many runs a verdict has to fail in one of them. Some of what is broken are races: a run
// may go well by chance, or break another promise first.
const brokenRuns = 3

// TestBrokenBuilds breaks each promise in the product itself, and sees the verdict of a real
// run fail. Other verdicts may fail with it. TestShortRuns keeps all of them on the same
// scenarios and the good build. Two at a time, for most of a run is waiting.
func TestBrokenBuilds(t *testing.T) {
	for _, broken := range brokenBuilds() {
		t.Run(broken.name, func(t *testing.T) {
			t.Parallel()
			if NeedsHosts(broken.scenario) {
				mayMakeHosts(t)
			}
			binary := broken.build(t)
			for range brokenRuns {
				r := broken.run(t, binary)
				if broken.verdict == "" {
					if !r.Kept {
						t.Error("not every verdict was kept")
					}
					return
				}
				if broken.seen(r) {
					return
				}
				t.Logf("%q did not see it: %+v", broken.verdict, r.Verdicts)
			}
			t.Errorf("%q did not see it in %d runs", broken.verdict, brokenRuns)
		})
	}
}

// run is one run of the scenario.
func (b *brokenBuild) run(t *testing.T, binary string) *Report {
	t.Helper()
	if NeedsHosts(b.scenario) {
		r, _ := reported(t, commandOf(t, binary, b.scenario, "1")) // it ends with a failure
		return r
	}
	began := time.Now()
	cluster, store := startCluster(t, devcluster.Options{Binary: binary, NodeEnv: narrowEnv(b.scenario)})
	o := shortRun(b.scenario, cluster, store)
	if b.rooms > 0 {
		o.Rooms = b.rooms
	}
	if b.scenario == Crowd {
		o.Peers = crowdPeers
	}
	o.patience = patience{recover: 3 * time.Second, settle: 4 * time.Second}
	r := runIn(t, t.Context(), o)
	t.Logf("%.1f s", time.Since(began).Seconds())
	return r
}

// seen says whether the verdict failed.
func (b *brokenBuild) seen(r *Report) bool {
	return !r.Kept && slices.ContainsFunc(r.Verdicts, func(s Summary) bool { return s.Broken > 0 && (b.verdict == anyVerdict || s.Name == b.verdict) })
}
