package chaos

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
	"github.com/holdfast-rtc/holdfast/lab/peer"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

// The times of a world: the fault, and when it was healed.
var (
	struckAt = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	healedAt = struckAt.Add(away)
)

func held(room, node string, epoch uint64) Held {
	return Held{Room: room, Node: node, Epoch: epoch, Peers: []devcluster.AdminPeer{{Peer: "p1", Offers: 1}}}
}

// look is a cluster of sfu-1 to sfu-3 whose pins say what the nodes hold.
func look(rooms ...Held) Look {
	l := Look{Live: make(map[pin.BootID]ring.NodeID), Loads: make(map[ring.NodeID]Load), Pins: make(map[string]pin.Pin), Held: rooms, Rosters: make(map[string]Roster)}
	for i := range 3 {
		node := ring.NodeID(fmt.Sprintf("sfu-%d", i+1))
		l.Live[pin.BootID(fmt.Sprintf("boot-%d", i+1))] = node
		l.Loads[node] = Load{EgressBitsPerSecond: 50, EgressPacketsPerSecond: 5, CeilingBitsPerSecond: 100, CeilingPacketsPerSecond: 10}
	}
	for _, h := range rooms {
		l.Rosters[h.Room] = Roster{current, []RosterPerson{{"ann"}}}
		l.Pins[h.Room] = pin.Pin{Node: ring.NodeID(h.Node), Boot: pin.BootID(strings.Replace(h.Node, "sfu", "boot", 1)), Fence: pin.Fence{Epoch: h.Epoch}}
	}
	return l
}

// answered are letters of which the second one's receiver had no connection, and one of the third one's two was away.
func answered() []Letter {
	return []Letter{
		{From: "ann", To: "bob", Number: 1, State: "delivered", Got: []int{1}, Owed: []bool{true}},
		{From: "ann", To: "bob", Number: 2, State: "offline", Got: []int{0}, Owed: []bool{false}},
		{From: "bob", To: "ann", Number: 1, State: "delivered", Got: []int{0, 1}, Owed: []bool{false, true}},
		{From: "bob", To: "ann", Number: 2, State: "gave_up", Got: []int{1, 0}, Owed: []bool{true, true}},
	}
}

// killed is a world in which everything went well: sfu-1 was killed, its room a
// moved to sfu-2, and room b on sfu-3 noticed nothing.
func killed() *World {
	return &World{
		Expect: Expect{Moves: true}, Until: healedAt,
		Faults: []Fault{{Node: "sfu-1", Role: devcluster.RoleSFU, What: "killed", At: struckAt, Seen: true}},
		Before: look(held("a", "sfu-1", 10), held("b", "sfu-3", 20)),
		Between: []Look{
			look(held("b", "sfu-3", 20)),
			look(held("a", "sfu-2", 11), held("b", "sfu-3", 20)),
		},
		After:   look(held("a", "sfu-2", 11), held("b", "sfu-3", 20)),
		Clients: []Client{{Name: "ann", Room: "a", Epochs: []uint64{11}}, {Name: "bob", Room: "b"}},
		People:  map[string][]string{"a": {"ann"}, "b": {"ann"}},
		Capped:  "a", Cap: 1, Line: []string{"eve"},
		Received: []Receipt{{Flow{"a", "ann", "art", "camera"}, true}},
		Letters:  answered(),
	}
}

// returned is a world in which everything went well: sfu-1 was cut off, and has a new room now.
func returned() *World {
	w := killed()
	w.Expect.Returns = true
	w.Late = look(held("a", "sfu-2", 11), held("b", "sfu-3", 20), held("c", "sfu-1", 30))
	return w
}

// missed is a world in which everything went well while the store was away.
func missed() *World {
	whole := look(held("a", "sfu-1", 10), held("b", "sfu-3", 20))
	return &World{
		Expect: Expect{Store: true}, Until: healedAt,
		Faults: []Fault{{Node: "store", Role: devcluster.RoleStore, What: "killed", At: struckAt, Seen: true}},
		Before: whole, Between: []Look{{PinsUnknown: "no store", Held: whole.Held}}, After: whole,
		Clients: []Client{{Name: "ann", Room: "a"}},
		People:  map[string][]string{"a": {"ann"}, "b": {"ann"}},
		Capped:  "a", Cap: 1,
		Received: []Receipt{{Fresh: true}},
		Letters:  answered(),
		Pauses:   []Pause{{Flow{"a", "ann", "art", "camera"}, 300 * time.Millisecond}},
	}
}

// lossyWorld is a world in which everything went well while sfu-1 lost packets.
func lossyWorld() *World {
	w := missed()
	w.Expect = Expect{Stays: true}
	w.Faults = []Fault{{Node: "sfu-1", Role: devcluster.RoleSFU, What: "lossy", At: struckAt, Seen: true}}
	return w
}

// forgotten is a world whose store forgot the pins, and whose owner took a room back from a new claim.
func forgotten() *World {
	w := missed()
	w.Expect.Forgets = true
	w.After = look(held("a", w.Before.Held[0].Node, w.Before.Held[0].Epoch+1), held("b", w.Before.Held[1].Node, w.Before.Held[1].Epoch))
	return w
}

// entered is a world in which people came while the store's clock was wrong, and some vanished.
func entered() *World {
	w := missed()
	w.Expect.Joins, w.Expect.Ghosts = true, true
	w.Ghosts = []string{"gil"}
	w.Newcomers = []Newcomer{
		{Room: "b", Name: "newcomer-1", After: time.Second, Took: time.Second},
		{Room: "door", Name: "newcomer-2", After: time.Second, Took: time.Second, Door: true},
		{Room: "door", Name: "newcomer-3", After: away, Waited: true, Beyond: true},
	}
	w.Between[0].Rosters = map[string]Roster{"b": {current, []RosterPerson{{"ann"}, {"newcomer-1"}}}}
	return w
}

// smooth is a world in which who had to move made a new connection, and missed nothing before that.
func smooth() *World {
	w := killed()
	w.Expect.Smooth = true
	w.Clients[0].Moments = []peer.Moment{{Step: peer.StepOffer, At: healedAt}}
	w.Pauses = missed().Pauses
	w.Log = []Entry{{Msg: "node down", Node: "sfu-1", Time: healedAt}}
	return w
}

// calmWorld is one in which nothing happened, under lossy gossip.
func calmWorld() *World {
	w := lossyWorld()
	w.Expect, w.Percent = Expect{Stays: true, Calm: true}, 5
	w.Log = parseLog(strings.NewReader(`{"time":"2026-11-21T11:59:59Z","msg":"`+lossSaid+`","percent":5}
{"time":"2026-11-21T11:59:59Z","msg":"room re-homing","room":"a"}
{"time":"2026-11-21T11:59:59Z","msg":"node down","node":"sfu-1"}
not a line of ours`), "signaling-1")
	return w
}

// spreadWorld is one in which the room a was on three nodes, and its branch sfu-3 was killed.
func spreadWorld() *World {
	w := killed()
	w.Faults[0].Node = "sfu-3"
	room := held("a", "sfu-1", 10)
	room.Peers = []devcluster.AdminPeer{{Peer: "p1", Identity: "ann"}, {Peer: "p2", Identity: "bob", Node: "sfu-2"}, {Peer: "p3", Identity: "cy", Node: "sfu-3"}}
	there := look(room, held("b", "sfu-3", 20))
	w.Before, w.Between, w.After = there, []Look{there}, look(room, held("b", "sfu-1", 21))
	w.After.Held[0].Peers = slices.Clone(room.Peers)
	w.After.Held[0].Peers[2].Node = "sfu-2"
	w.People, w.Cap = map[string][]string{"a": {"ann", "bob", "cy"}, "b": {"ann"}}, 3
	for _, l := range []Look{there, w.After} {
		l.Rosters["a"] = Roster{current, []RosterPerson{{"ann"}, {"bob"}, {"cy"}}}
	}
	w.Spread = &Spread{
		Room: "a", Owner: "sfu-1", Branches: []string{"sfu-2", "sfu-3"}, At: map[string]string{"ann": "sfu-1", "bob": "sfu-2", "cy": "sfu-3"},
		Crossing: []Crossing{{From: "sfu-1", To: "sfu-2", Crossed: 100, Sent: 100, Layers: 2, Most: 2, People: 2}},
	}
	w.Clients = []Client{
		{Name: "ann", Room: "a", Others: 2, LongestGap: time.Second, LocalGap: 60 * time.Millisecond, KeyframesAsked: 3},
		{Name: "bob", Room: "a", Others: 2, LongestGap: time.Second},
		{Name: "cy", Room: "a", Others: 2, Epochs: []uint64{10}, Moments: []peer.Moment{{Step: peer.StepOffer, At: healedAt}}},
	}
	return w
}

func TestAWorldThatKeptItsPromises(t *testing.T) {
	for name, w := range map[string]*World{
		"killed": killed(), "missed": missed(), "returned": returned(), "lossy": lossyWorld(), "smooth": smooth(), "entered": entered(), "forgotten": forgotten(), "calm": calmWorld(), "spread": spreadWorld(),
	} {
		for _, v := range Judge(w) {
			if v.Outcome != Kept {
				t.Errorf("%s: %s is %s: %v", name, v.Name, v.Outcome, v.Faults)
			}
		}
	}
}

// brokenWorld is a way to break a promise, and the verdict that must see it.
type brokenWorld struct {
	name  string
	check func(*World) Verdict
	world func() *World
	spoil func(*World)
	want  Outcome
}

func brokenWorlds() []brokenWorld {
	return []brokenWorld{
		{"the victim lives", FaultHappened, killed, func(w *World) { w.Faults[0].Seen = false }, Broken},
		{"nothing was hurt", FaultHappened, killed, func(w *World) { w.Faults = nil }, Unchecked},
		{"two owners in the end", OneOwner, killed, func(w *World) { w.After.Held = append(w.After.Held, held("a", "sfu-3", 10)) }, Broken},
		{"two owners of one epoch meanwhile", OneOwner, killed, func(w *World) { w.Between[1].Held = append(w.Between[1].Held, held("a", "sfu-3", 11)) }, Broken},
		{"no owner", OneOwner, killed, func(w *World) { w.After.Held = w.After.Held[1:] }, Broken},
		{"the owner is not the one of the pin", OneOwner, killed, func(w *World) { w.After.Held[0].Node = "sfu-3" }, Broken},
		{"an SFU did not answer", OneOwner, killed, func(w *World) { w.After.NodesUnknown = "sfu-1 is silent" }, Unchecked},
		{"a pin's epoch went back", EpochsGrow, killed, func(w *World) { w.After = look(held("a", "sfu-2", 9), held("b", "sfu-3", 20)) }, Broken},
		{"a room is held below its pin", EpochsGrow, killed, func(w *World) { w.After.Held[0].Epoch = 10 }, Broken},
		{"a client was sent back", EpochsGrow, killed, func(w *World) { w.Clients[0].Epochs = []uint64{11, 10} }, Broken},
		{"the store did not answer", EpochsGrow, missed, func(w *World) { w.After.PinsUnknown = "no store" }, Unchecked},
		{"a healthy room moved", Surgical, killed, func(w *World) { w.After.Held[1].Node = "sfu-2" }, Broken},
		{"a healthy room's epoch grew", Surgical, killed, func(w *World) { w.After.Held[1].Epoch++ }, Broken},
		{"a room was claimed anew elsewhere", Surgical, forgotten, func(w *World) { w.After.Held[0].Node = "sfu-3" }, Broken},
		{"a room went back to a lower epoch", Surgical, forgotten, func(w *World) { w.After.Held[0].Epoch = 9 }, Broken},
		{"a room that was claimed anew dropped a packet", Surgical, forgotten, func(w *World) { w.After.Held[0].PacketsDropped++ }, Broken},
		{"a healthy room dropped a packet", Surgical, killed, func(w *World) { w.After.Held[1].PacketsDropped++ }, Broken},
		{"somebody in a healthy room offered", Surgical, killed, func(w *World) { w.After.Held[1].Peers[0].Offers++ }, Broken},
		{"a healthy room is gone", Surgical, killed, func(w *World) { w.After.Held = w.After.Held[:1] }, Broken},
		{"no room was healthy", Surgical, killed, func(w *World) { w.Before = look(held("a", "sfu-1", 10)) }, Unchecked},
		{"a pin names a dead boot", NoOrphan, killed, func(w *World) { delete(w.After.Live, "boot-2") }, Broken},
		{"a pin names an older boot", NoOrphan, killed, func(w *World) {
			p := w.After.Pins["a"]
			p.Boot = "boot-0"
			w.After.Pins["a"] = p
		}, Broken},
		{"a room has no pin", NoOrphan, missed, func(w *World) { delete(w.After.Pins, "b") }, Broken},
		{"nobody knows the pins", NoOrphan, missed, func(w *World) { w.After.PinsUnknown = "no store" }, Unchecked},
		{"a room moved twice", MovedOnce, killed, func(w *World) { w.After.Held[0].Epoch = 12 }, Broken},
		{"a room did not move", MovedOnce, killed, func(w *World) { w.After.Held[0].Epoch = 10 }, Broken},
		{"a client was told twice", MovedOnce, killed, func(w *World) { w.Clients[0].Epochs = []uint64{11, 12} }, Broken},
		{"a client was told while the store was away", MovedOnce, missed, func(w *World) { w.Clients[0].Epochs = []uint64{11} }, Broken},
		{"no room had to move", MovedOnce, killed, func(w *World) { w.Faults[0].Node = "sfu-2" }, Unchecked},
		{"a survivor sends too many bits", UnderCeiling, killed, func(w *World) {
			w.Between[1].Loads["sfu-2"] = Load{EgressBitsPerSecond: 101, CeilingBitsPerSecond: 100, CeilingPacketsPerSecond: 10}
		}, Broken},
		{"a survivor sends too many packets", UnderCeiling, killed, func(w *World) {
			w.After.Loads["sfu-2"] = Load{EgressPacketsPerSecond: 11, CeilingBitsPerSecond: 100, CeilingPacketsPerSecond: 10}
		}, Broken},
		{"nobody reported a load", UnderCeiling, killed, func(w *World) {
			w.After.Loads = nil
			for i := range w.Between {
				w.Between[i].Loads = nil
			}
		}, Unchecked},
		{"somebody is at two nodes", OnePlace, spreadWorld, func(w *World) {
			w.After.Held[0].Peers = append(w.After.Held[0].Peers, devcluster.AdminPeer{Identity: "cy", Node: "sfu-3"})
		}, Broken},
		{"somebody is nowhere", OnePlace, spreadWorld, func(w *World) { w.After.Held[0].Peers = w.After.Held[0].Peers[:2] }, Broken},
		{"the room on several nodes is empty", OnePlace, spreadWorld, func(w *World) { w.People = nil }, Unchecked},
		{"somebody at an unhurt node offered", OthersStay, spreadWorld, func(w *World) { w.Clients[1].Moments = w.Clients[2].Moments }, Broken},
		{"no sound at an unhurt node", OthersStay, spreadWorld, func(w *World) { w.Clients[0].LocalGap = longestPause + 1 }, Broken},
		{"nobody was at an unhurt node", OthersStay, spreadWorld, func(w *World) { w.Clients = w.Clients[2:] }, Unchecked},
		{"a roster lacks somebody", RostersEqual, spreadWorld, func(w *World) { w.Clients[2].Others = 1 }, Broken},
		{"no client was asked", RostersEqual, spreadWorld, func(w *World) { w.Clients = nil }, Unchecked},
		{"all crosses twice", LayersCrossOnce, spreadWorld, func(w *World) { w.Spread.Crossing[0].Crossed *= 2 }, Broken},
		{"more layers cross than there are", LayersCrossOnce, spreadWorld, func(w *World) { w.Spread.Crossing[0].Layers++ }, Broken},
		{"nothing crosses", LayersCrossOnce, spreadWorld, func(w *World) { w.Spread.Crossing[0].Crossed = 0 }, Broken},
		{"no link was there", LayersCrossOnce, spreadWorld, func(w *World) { w.Spread.Crossing = nil }, Unchecked},
		{"a publisher is asked too often", FewKeyframes, spreadWorld, func(w *World) { w.Clients[0].KeyframesAsked = mostAsked + 1 }, Broken},
		{"no publisher was asked", FewKeyframes, spreadWorld, func(w *World) { w.Clients = nil }, Unchecked},
		{"somebody gets nothing", EverybodyReceives, killed, func(w *World) { w.Received[0].Fresh = false }, Broken},
		{"somebody got nothing until the fault was mended", EverybodyReceives, killed, func(w *World) { w.Lacking = "ada" }, Broken},
		{"nobody was asked", EverybodyReceives, killed, func(w *World) { w.Received = nil }, Unchecked},
		{"somebody is not in a roster", NobodyMissing, killed, func(w *World) { w.Between[1].Rosters["a"] = Roster{State: current} }, Broken},
		{"a roster is not written", NobodyMissing, killed, func(w *World) { w.After.Rosters["a"] = Roster{} }, Broken},
		{"somebody gone is in a roster", NobodyGone, killed, func(w *World) { w.After.Rosters["a"] = Roster{current, []RosterPerson{{guestName}}} }, Broken},
		{"one too many in a roster", NeverOverCap, killed, func(w *World) { w.Between[1].Rosters["a"] = Roster{settling, []RosterPerson{{"ann"}, {"bob"}}} }, Broken},
		{"one too many at a media node", NeverOverCap, killed, func(w *World) {
			w.After.Held[0].Peers = []devcluster.AdminPeer{{Peer: "p1", Identity: "ann"}, {Peer: "p2", Identity: "bob"}}
		}, Broken},
		{"somebody who was in waits", NeverOverCap, killed, func(w *World) { w.Clients[0].Moments = []peer.Moment{{Step: peer.StepWaiting, At: healedAt}} }, Broken},
		{"nobody looked at the room", NeverOverCap, killed, func(w *World) { w.Capped = "c" }, Unchecked},
		{"a message was lost", MessagesAnswered, killed, func(w *World) { w.Letters[0].Got[0], w.Letters[0].Owed[0] = 0, false }, Broken},
		{"one of two connections got nothing", MessagesAnswered, killed, func(w *World) { w.Letters[2].Owed[0] = true }, Broken},
		{"a message came twice", MessagesAnswered, killed, func(w *World) { w.Letters[0].Got[0] = 2 }, Broken},
		{"a sender was told nothing", MessagesAnswered, killed, func(w *World) { w.Letters[1].State = "" }, Broken},
		{"a message came after its successor", MessagesAnswered, killed, func(w *World) { w.LateLetters = []string{"bob got 1 after 2"} }, Broken},
		{"nobody wrote", MessagesAnswered, killed, func(w *World) { w.Letters = nil }, Unchecked},
		{"somebody of the line is in a roster", PlacesKept, killed, func(w *World) { w.Between[1].Rosters["a"] = Roster{settling, []RosterPerson{{"eve"}}} }, Broken},
		{"somebody of the line is at a media node", PlacesKept, killed, func(w *World) {
			w.After.Held[0].Peers = []devcluster.AdminPeer{{Peer: "p1", Identity: "eve"}}
		}, Broken},
		{"somebody who was in is not in the end", PlacesKept, killed, func(w *World) {
			w.Full = look(held("a", "sfu-2", 11))
			w.Full.Rosters["a"] = Roster{State: current}
		}, Broken},
		{"somebody who was in is refused", PlacesKept, killed, func(w *World) { w.Clients[0].Refused = "room_full" }, Broken},
		{"nobody looked for the line", PlacesKept, killed, func(w *World) { w.Capped = "c" }, Unchecked},
		{"somebody could not join", JoinsGoOn, entered, func(w *World) { w.Newcomers[0].Took = 0 }, Broken},
		{"somebody joined late", JoinsGoOn, entered, func(w *World) { w.Newcomers[0].Took = 2 * joinWithin }, Broken},
		{"somebody was refused", JoinsGoOn, entered, func(w *World) { w.Newcomers[0].Refused = "store_unavailable" }, Broken},
		{"nobody came", JoinsGoOn, entered, func(w *World) { w.Newcomers = nil }, Unchecked},
		{"a free place was kept from somebody", DoorLetsIn, entered, func(w *World) { w.Newcomers[1].Waited = true }, Broken},
		{"somebody came in beyond the cap", DoorLetsIn, entered, func(w *World) { w.Newcomers[2].Took = time.Second }, Broken},
		{"nobody came to the door", DoorLetsIn, entered, func(w *World) { w.Newcomers = w.Newcomers[:1] }, Unchecked},
		{"a newcomer stays in a roster", NobodyGone, entered, func(w *World) { w.After.Rosters["b"] = w.Between[0].Rosters["b"] }, Broken},
		{"somebody gone is online", NoGhosts, entered, func(w *World) { w.Haunting = w.Ghosts }, Broken},
		{"nobody vanished", NoGhosts, entered, func(w *World) { w.Ghosts = nil }, Unchecked},
		{"a room that need not move is on two nodes meanwhile", OneOwner, missed, func(w *World) {
			w.Between[0].Held = append(w.Between[0].Held, held("a", "sfu-2", 11))
		}, Broken},
		{"no roster is read", NobodyGone, killed, func(w *World) { w.Between, w.After = nil, Look{} }, Unchecked},

		{"a stream stopped with the store", MediaNeedsNoStore, missed, func(w *World) { w.Pauses[0].Longest = away }, Broken},
		{"somebody offered anew", MediaNeedsNoStore, missed, func(w *World) { w.Clients[0].Moments = []peer.Moment{{Step: peer.StepOffer}} }, Broken},
		{"a node that is back gets no room", BackInService, returned, func(w *World) { w.Late = w.After }, Broken},
		{"nobody knows what it holds", BackInService, returned, func(w *World) { w.Late.NodesUnknown = "sfu-2 is silent" }, Unchecked},
		{"the store was hardly away", MediaNeedsNoStore, missed, func(w *World) { w.Until = struckAt.Add(time.Second) }, Unchecked},
		{"the hurt node's own room moved", Surgical, lossyWorld, func(w *World) { w.After = look(held("a", "sfu-2", 11), held("b", "sfu-3", 20)) }, Broken},
		{"another room moved", Surgical, lossyWorld, func(w *World) { w.After = look(held("a", "sfu-1", 10), held("b", "sfu-2", 21)) }, Broken},
		{"a client was told to move", MovedOnce, lossyWorld, func(w *World) { w.Clients[0].Epochs = []uint64{11} }, Broken},
		{"a stream stopped", MediaGoesOn, lossyWorld, func(w *World) { w.Pauses[0].Longest = 2 * longestPause }, Broken},
		{"somebody connected anew", MediaGoesOn, lossyWorld, func(w *World) { w.Clients[0].Moments = []peer.Moment{{Step: peer.StepOffer, At: healedAt}} }, Broken},
		{"nobody looked", MediaGoesOn, lossyWorld, func(w *World) { w.Pauses = nil }, Unchecked},
		{"a stream stopped before it moved", MediaGoesOn, smooth, func(w *World) { w.Pauses[0].Longest = 2 * longestPause }, Broken},
		{"another node was taken for dead", NoFalseDeath, killed, func(w *World) { w.Log = []Entry{{Msg: "node down", Node: "sfu-2", Time: healedAt}} }, Broken},
		{"a room was moved", NothingMoved, calmWorld, func(w *World) { w.Log = append(w.Log, Entry{Msg: "room re-homing", Time: healedAt}) }, Broken},
		{"an epoch grew", NothingMoved, calmWorld, func(w *World) { w.After = look(held("a", "sfu-1", 11), held("b", "sfu-3", 20)) }, Broken},
		{"no gossip was lost", GossipWasLossy, calmWorld, func(w *World) { w.Log = nil }, Broken},
		{"a node taken for dead", NoFalseDeath, calmWorld, func(w *World) { w.Log = append(w.Log, Entry{Msg: "node down", Node: "sfu-1", Time: healedAt}) }, Broken},
		{"a log that is not read", NoFalseDeath, calmWorld, func(w *World) { w.LogUnknown = "no log" }, Unchecked},
	}
}

// TestEveryVerdictCanFail: a check that cannot fail is worse than none.
func TestEveryVerdictCanFail(t *testing.T) {
	for _, test := range brokenWorlds() {
		w := test.world()
		test.spoil(w)
		v := test.check(w)
		if v.Outcome != test.want || len(v.Faults) == 0 {
			t.Errorf("%s: %q is %q %v, want %q and why", test.name, v.Name, v.Outcome, v.Faults, test.want)
		}
		r := &Report{Trials: []*Trial{{Verdicts: []Verdict{v}}}}
		r.finish(struckAt)
		if r.Kept {
			t.Errorf("%s: the report says that all was kept", test.name)
		}
	}
}
