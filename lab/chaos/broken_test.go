package chaos

import (
	"slices"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
)

// brokenBuild is a mutant, the scenario that must find it out, and the verdict that must say so.
type brokenBuild struct {
	mutant

	scenario Name
	verdict  string
	rooms    int    // 0: as in every short run; more where a room may be spared by chance
	also     string // a second verdict that must fail in the same run, which spares a build; empty = none
}

// walking has the rooms of a dead node walk the ring as another room.
func walking(room string) edit {
	return edit{"orchestrator", "ledger.walk", "_view.Ring.Successors(_room)", `_view.Ring.Successors(func() ring.RoomID {
			if _arg3.boot != "" {
				return ` + room + `
			}
			return _room
		}())`}
}

// hurried makes a scenario of the network shorter; it changes nothing in the product.
func hurried() edit { return edit{"lab/chaos", "hurtFor", "", "6 * time.Second"} }

func brokenBuilds() []brokenBuild {
	return []brokenBuild{
		{mutant{"a node does not let go of a room that has a higher fence", []edit{
			{"sfu", "Node.fence", "_held && !_r.pin().Fence.Less(_higher.Fence)", "_held"},
		}}, Freeze, "one room, one owner", 0, ""},
		{mutant{"a re-homing lowers the epoch", []edit{
			{"orchestrator/pincache", "Cache.NextEpoch", "max(_old, _seen) + 1", "_old - 1"},
		}}, Kill, "epochs only grow", 0, ""},
		{mutant{"a death moves every room", []edit{
			{"signaling/hub", "Hub.PinnedTo", "_recv.byBoot[_boot]", "_recv.rooms"},
			{"failover", "Failover.moveLost", "_room.Pin.Boot == _boot", `_boot != ""`},
			{"failover", "Failover.decide", "!_recv.gone(_boot)", `_boot == ""`},
		}}, Kill, "surgical", 0, ""},
		{mutant{"nobody moves the rooms of a dead node: neither who has their people, nor the sweep, nor who joins", []edit{
			{"failover", "Failover.moveLost", "_room.Pin.Boot == _boot", "false"},
			{"failover", "Failover.Run", "_owned.Go(func() { _recv.sweepUntilDone(_ctx) })", ""},
			{"orchestrator", "whyGone", `"its process is gone: " + _how`, `_how[:0]`},
			{"orchestrator", "whyGone", `"a newer process has its name"`, `""`},
		}}, Kill, "no orphan", 0, ""},
		{mutant{"a room moves once more after it has moved", []edit{{
			"failover", "Failover.decide", "_to, _err := _recv.rehomer.Rehome(_ctx, _room, _from, _expect)",
			`_to, _err := _recv.rehomer.Rehome(_ctx, _room, _from, _expect)
	if _err == nil {
		_to, _err = _recv.rehomer.Rehome(_ctx, _room, _to, _expect)
	}`,
		}}}, Kill, "moved once", 0, ""},
		{mutant{"clients are not told that their room has moved", []edit{
			{"signaling", "session.takeOver", `_recv.restart("moved")`, ""},
		}}, Kill, "everybody receives everybody", 0, ""},
		{mutant{"a node that cannot refresh its pins closes its rooms", []edit{
			{"orchestrator/pinowner", "Owner.round", "_err := _recv.Refresh(_ctx)", `_err := _recv.Refresh(_ctx)
			if _err != nil {
				for _, h := range _recv.rooms.Held() {
					h.Pin.Node, h.Pin.Fence.Epoch = "nobody", h.Pin.Fence.Epoch+1
					_recv.rooms.Fence(h.Room, h.Pin)
				}
			}`},
			{"orchestrator/pinowner", "DefaultConfig", "RefreshEvery: _n * _unit", "RefreshEvery: _unit"},
		}}, StoreKill, "media needs no store", 0, ""},
		{mutant{"neither signaling nor media nodes look at ceilings, and all rooms of a dead node go to one", []edit{
			walking(`"one of them"`),
			{"orchestrator", "fitOf", "!_with.Fits(_c.ceiling)", "_c.ceiling == (headroom.Egress{})"},
			{"orchestrator", "fitOf", "_with.Share(_c.ceiling) <= _limit", "_with.Fits(_with)"},
			{"headroom", "Takes", "_load.Plus(_cost).Fits(_ceiling) || _idle", "_cost.Fits(_cost)"},
		}}, Crowd, "no survivor over its ceiling", crowdRooms, ""},
		{mutant{"the store is not told who leaves, and many messages have one number", []edit{
			{"redisstore/lua", "write_roster.lua", "redis.call('HDEL', roster, ARGV[i], '@wait:' .. ARGV[i])", ""},
			{"signaling/translate", "UserMessage", "Seq: _m.Seq", "Seq: _m.Seq | 1023"},
		}}, Kill, "nobody is shown who is gone", 0, "messages once or answered"},
		{mutant{"rosters that the store lost are not written again", []edit{
			{"people/roster", "Writer.Rewrite", "", "if _recv != nil { return nil };"},
			{"people/roster", "Writer.Renew", "", "if _recv != nil { return };"},
		}}, StoreKill, "nobody is missing who is here", 6, ""},
		{mutant{"the next owner's first roster forgets the last owner's people", []edit{
			{"redisstore/lua", "write_roster.lua", "return not settled and (moved or before['@wait:' .. id])", "return false"},
			{"redisstore/lua", "write_roster.lua", "for i = firstPut, lastPut, 4 do", "for i = firstPut, moved and 0 or lastPut, 4 do"},
		}}, Kill, "never over the cap", 0, "no place is lost to the line"},
		{mutant{"a failpoint does nothing", []edit{
			{"internal/failpoint", "Hit", "_list[_name]", `_list["not "+_name]`},
		}}, DoubleFault, "the fault happened", 0, ""},
		{mutant{"gossip is too fast for the network, and signaling nodes believe it at once", []edit{
			{"cluster", "probeInterval", "", "40 * time.Millisecond"},
			{"cluster", "probeTimeout", "", "20 * time.Millisecond"},
			{
				"failover", "Failover.evaluate", "_silence >= _recv.config.BelieveAfter && _unanswered >= _recv.config.AnswerWithin",
				"_silence >= _unanswered",
			},
			hurried(),
		}}, Delay, "no false death", 0, ""},
		{mutant{"a lost packet stops its stream for six seconds", []edit{
			{
				"sfu/forward", "Layer.receive", "_sequence, _ok := _recv.tracker.Extend(_received)",
				`began, next := _recv.packets > 0, _recv.tracker.Highest+1
	_sequence, _ok := _recv.tracker.Extend(_received)
	lost := began && _sequence > next`,
			},
			{"sfu/forward", "Layer.receive", "_recv.lastHeard = _arrived", `if _arrived.Before(_recv.lastHeard) {
		return false
	}
	_recv.lastHeard = _arrived
	if lost {
		_recv.lastHeard = _arrived.Add(6 * time.Second)
	}`},
			hurried(),
		}}, Loss, "media goes on", 0, ""},
		{mutant{"a node that was taken for dead gets no rooms when it is back", []edit{
			{
				"cluster", "members.join", "_node.Load, _node.Suspect = Load{}, false",
				"_node.Load, _node.Suspect, _node.Draining = Load{}, false, why == whyReturned",
			},
			{"lab/chaos", "returnLimit", "", "2 * time.Second"},
		}}, Partition, "back in service", 0, ""},
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
				if broken.seen(r) {
					return
				}
				t.Logf("%q did not see it: %+v", broken.verdicts(), r.Verdicts)
			}
			t.Errorf("%q did not see it in %d runs", broken.verdicts(), brokenRuns)
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

func (b *brokenBuild) verdicts() []string {
	if b.also == "" {
		return []string{b.verdict}
	}
	return []string{b.verdict, b.also}
}

// seen says whether the verdicts failed.
func (b *brokenBuild) seen(r *Report) bool {
	return !r.Kept && !slices.ContainsFunc(b.verdicts(), func(name string) bool {
		return !slices.ContainsFunc(r.Verdicts, func(s Summary) bool { return s.Broken > 0 && s.Name == name })
	})
}
