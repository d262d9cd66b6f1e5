package chaos

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/holdfast-rtc/holdfast/lab/peer"
)

// Outcome is an invariant's result.
type Outcome string

// Unchecked counts as broken.
const (
	Kept      Outcome = "kept"
	Broken    Outcome = "broken"
	Unchecked Outcome = "could not be checked"
)

// Verdict is what one check found.
type Verdict struct {
	Name     string   `json:"name"`
	Sentence string   `json:"sentence"` // the promise
	Outcome  Outcome  `json:"outcome"`
	Faults   []string `json:"faults,omitempty"` // the first few
}

const maxFaults = 10

func (v *Verdict) broken(format string, values ...any) {
	v.Outcome = Broken
	if len(v.Faults) < maxFaults {
		v.Faults = append(v.Faults, fmt.Sprintf(format, values...))
	}
}

// What is broken stays broken.
func (v *Verdict) unchecked(format string, values ...any) Verdict {
	if v.Outcome == Kept {
		v.Outcome = Unchecked
	}
	v.Faults = append(v.Faults, fmt.Sprintf(format, values...))
	return *v
}

func (v *Verdict) first() string {
	if len(v.Faults) == 0 {
		return string(v.Outcome)
	}
	return v.Faults[0]
}

func verdict(name, sentence string) *Verdict {
	return &Verdict{Name: name, Sentence: sentence, Outcome: Kept}
}

// Judge gives every verdict that the scenario can touch.
func Judge(w *World) []Verdict {
	var verdicts []Verdict
	for _, c := range []struct {
		judge   func(*World) Verdict
		touched bool
	}{
		{FaultHappened, !w.Expect.Calm},
		{GossipWasLossy, w.Expect.Calm},
		{OneOwner, true},
		{EpochsGrow, true},
		{Surgical, !w.Expect.Calm && !w.Expect.All},
		{NothingMoved, w.Expect.Calm},
		{NoOrphan, true},
		{MovedOnce, !w.Expect.Calm},
		{EverybodyReceives, true},
		{NobodyMissing, true},
		{NobodyGone, true},
		{NeverOverCap, true},
		{MessagesAnswered, true},
		{NoFalseDeath, true},
		{PlacesKept, true},
		{JoinsGoOn, w.Expect.Joins},
		{DoorLetsIn, w.Expect.Joins},
		{NoGhosts, w.Expect.Ghosts},
		{MediaNeedsNoStore, w.Expect.Store},
		{UnderCeiling, w.Expect.Moves},
		{MediaGoesOn, w.Expect.Stays && !w.Expect.Calm || w.Expect.Smooth},
		{BackInService, w.Expect.Returns},
		{OnePlace, w.Spread != nil},
		{OthersStay, w.Spread != nil},
		{RostersEqual, w.Spread != nil},
		{LayersCrossOnce, w.Spread != nil},
		{FewKeyframes, w.Spread != nil},
	} {
		if c.touched {
			verdicts = append(verdicts, c.judge(w))
		}
	}
	return verdicts
}

// FaultHappened fails a trial in which nothing was hurt.
func FaultHappened(w *World) Verdict {
	v := verdict("the fault happened", "what the scenario was to do to the cluster was done")
	if len(w.Faults) == 0 {
		return v.unchecked("nothing was hurt")
	}
	for _, f := range w.Faults {
		if !f.Seen {
			v.broken("%s was to be %s, and was not", f.Node, f.What)
		}
	}
	return *v
}

// OneOwner asks every media node, not the store.
func OneOwner(w *World) Verdict {
	v := verdict("one room, one owner", "after the fault each room is held by exactly one SFU node, never by two under one epoch, and a room that need not move never by two at all")
	for i, look := range append(slices.Clone(w.Between), w.After) {
		for _, room := range w.rooms() {
			holders := look.holders(room)
			if len(holders) > 1 && !w.Expect.Moves && !w.struckRoom(room) {
				v.broken("look %d: %s need not move, and is held by %v", i+1, room, nodesOf(holders))
			}
			for a := range holders {
				for b := range a {
					if holders[a].Epoch == holders[b].Epoch {
						v.broken("look %d: %s and %s both hold %s at epoch %d", i+1, holders[b].Node, holders[a].Node, room, holders[a].Epoch)
					}
				}
			}
		}
	}
	if w.After.NodesUnknown != "" {
		return v.unchecked("%s", w.After.NodesUnknown)
	}
	for _, room := range w.rooms() {
		holders := w.After.holders(room)
		if len(holders) != 1 {
			v.broken("%s is held by %d SFU nodes: %v", room, len(holders), nodesOf(holders))
			continue
		}
		if p, known := w.After.Pins[room]; known && (string(p.Node) != holders[0].Node || p.Fence.Epoch != holders[0].Epoch) {
			v.broken("%s is held by %s at epoch %d, and its pin says %s at %d", room, holders[0].Node, holders[0].Epoch, p.Node, p.Fence.Epoch)
		}
	}
	return *v
}

func nodesOf(holders []Held) []string {
	names := make([]string, 0, len(holders))
	for _, h := range holders {
		names = append(names, h.Node)
	}
	return names
}

// EpochsGrow compares pins over time, and what each client was told.
func EpochsGrow(w *World) Verdict {
	v := verdict("epochs only grow", "no pin and no client's placement ever goes back to a lower epoch")
	for _, room := range w.rooms() {
		highest := uint64(0)
		for _, look := range append(append([]Look{w.Before}, w.Between...), w.After) {
			p, known := look.Pins[room]
			if !known {
				continue
			}
			if p.Fence.Epoch < highest {
				v.broken("the pin of %s went from epoch %d back to %d", room, highest, p.Fence.Epoch)
			}
			highest = max(highest, p.Fence.Epoch)
		}
		for _, h := range w.After.holders(room) {
			if h.Epoch < highest {
				v.broken("%s is held at epoch %d after its pin was at %d", room, h.Epoch, highest)
			}
		}
	}
	for _, client := range w.Clients {
		for i := 1; i < len(client.Epochs); i++ {
			if client.Epochs[i] < client.Epochs[i-1] {
				v.broken("%s of %s was told epoch %d and then %d", client.Name, client.Room, client.Epochs[i-1], client.Epochs[i])
			}
		}
	}
	for _, look := range []Look{w.Before, w.After} {
		if look.PinsUnknown != "" {
			return v.unchecked("%s", look.PinsUnknown)
		}
	}
	return *v
}

// Surgical compares what media nodes report of healthy rooms.
func Surgical(w *World) Verdict {
	v := verdict("surgical", "a room on a healthy node keeps its node and its epoch, makes no new offer, and its node drops none of its packets")
	healthy := 0
	for _, before := range w.Before.Held {
		if w.struckRoom(before.Room) {
			continue
		}
		healthy++
		for _, after := range w.After.holders(before.Room) {
			// Without its pin a room can be claimed anew. The owner then replaces the claim by a higher pin of its own, which moves nobody.
			reclaimed := w.Expect.Forgets && after.Node == before.Node && after.Epoch > before.Epoch
			if !reclaimed && (after.Node != before.Node || after.Epoch != before.Epoch) {
				v.broken("%s went from %s epoch %d to %s epoch %d", before.Room, before.Node, before.Epoch, after.Node, after.Epoch)
				continue
			}
			if w.Spread.is(before.Room) { // the counts are of all its nodes
				continue
			}
			if after.Lost() != before.Lost() {
				v.broken("%s on %s: %d packets dropped", before.Room, before.Node, after.Lost()-before.Lost())
			}
			then, now := before.Offers(), after.Offers()
			for _, id := range slices.Sorted(maps.Keys(then)) {
				if _, stayed := now[id]; stayed && now[id] != then[id] { // the guest may be leaving
					v.broken("%s: peer %s offered %d times, %d before the fault", before.Room, id, now[id], then[id])
				}
			}
		}
		if len(w.After.holders(before.Room)) == 0 {
			v.broken("%s is held by nobody any more", before.Room)
		}
	}
	switch {
	case w.Before.NodesUnknown != "" || w.After.NodesUnknown != "":
		return v.unchecked("%s%s", w.Before.NodesUnknown, w.After.NodesUnknown)
	case healthy == 0 && w.Spread == nil:
		return v.unchecked("no room was on a healthy node")
	}
	return *v
}

// NoOrphan reads the pins.
func NoOrphan(w *World) Verdict {
	v := verdict("no orphan", "every room has a pin, and every pin names an SFU boot that is alive")
	if w.After.PinsUnknown != "" {
		return v.unchecked("%s", w.After.PinsUnknown)
	}
	if len(w.After.Live) == 0 {
		return v.unchecked("no SFU node is seen alive: %s", w.After.NodesUnknown)
	}
	for _, room := range w.rooms() {
		if _, pinned := w.After.Pins[room]; !pinned {
			v.broken("%s has no pin", room)
		}
	}
	for _, room := range slices.Sorted(maps.Keys(w.After.Pins)) {
		if p := w.After.Pins[room]; w.After.Live[p.Boot] != p.Node {
			v.broken("%s is pinned to %s boot %s, which is not alive", room, p.Node, p.Boot)
		}
	}
	return *v
}

// MovedOnce counts epochs: each re-homing adds one.
func MovedOnce(w *World) Verdict {
	v := verdict("moved once", "a room moves at most once for each media node that was hurt and each move that an operator asked for, its clients are told of no more moves than that, and a room that had to move did")
	most := uint64(0)
	if w.Expect.Moves || w.Expect.Links {
		most = uint64(len(w.struckSFU()) + w.Asked)
	}
	if w.Before.NodesUnknown != "" || w.After.NodesUnknown != "" {
		return v.unchecked("%s%s", w.Before.NodesUnknown, w.After.NodesUnknown)
	}
	moved := 0
	for _, before := range w.Before.Held {
		for _, after := range w.After.holders(before.Room) {
			if !w.struckRoom(before.Room) {
				continue // Surgical's
			}
			moved++
			if by := after.Epoch - before.Epoch; after.Epoch <= before.Epoch || by > most {
				v.broken("%s went from epoch %d to %d, want 1 to %d more", before.Room, before.Epoch, after.Epoch, most)
			}
		}
	}
	for _, client := range w.Clients {
		if uint64(len(client.Epochs)) > most {
			v.broken("%s of %s was told to restart %d times", client.Name, client.Room, len(client.Epochs))
		}
	}
	if w.Expect.Moves && moved == 0 {
		return v.unchecked("no room was on a node that was hurt")
	}
	return *v
}

// EverybodyReceives also reports what had not come back when the fault was mended.
func EverybodyReceives(w *World) Verdict {
	v := receivesNow(w)
	if w.Lacking != "" {
		v.broken("until the fault was mended: %s", w.Lacking)
	}
	return v
}

func receivesNow(w *World) Verdict {
	v := verdict("everybody receives everybody", "after the fault, and where rooms have to move already while it lasts, each client gets fresh audio and video of each other one in its room")
	if len(w.Received) == 0 {
		return v.unchecked("nobody was asked")
	}
	for _, r := range w.Received {
		if !r.Fresh {
			v.broken("%s: %s has no fresh %s of %s", r.Room, r.Client, r.Source, r.From)
		}
	}
	return *v
}

// longestPause allows for a busy machine. It is shorter than away.
const longestPause = 3 * time.Second

// MediaNeedsNoStore checks every stream while the store, or a signaling node, was away.
func MediaNeedsNoStore(w *World) Verdict {
	return undisturbed(w, "media needs no store", fmt.Sprintf("while the store or a signaling node is away no stream pauses for more than %s, and nobody makes a new connection", longestPause))
}

func latest(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

func undisturbed(w *World, name, sentence string) Verdict {
	v := verdict(name, sentence)
	if away := latest(w.Until, w.Watched).Sub(w.first()); away <= longestPause && !w.Expect.Moves {
		return v.unchecked("it lasted for %s only", away)
	}
	if len(w.Pauses) == 0 {
		return v.unchecked("no stream was watched")
	}
	for _, p := range w.Pauses {
		if p.Longest > longestPause {
			v.broken("%s: %s had no %s of %s for %s", p.Room, p.Client, p.Source, p.From, p.Longest.Round(time.Millisecond))
		}
	}
	for _, client := range w.Clients {
		for _, m := range client.Moments {
			if m.Step == peer.StepOffer && !w.struckClient(client) {
				v.broken("%s of %s made a new offer", client.Name, client.Room)
			}
		}
	}
	return *v
}

// NoFalseDeath reads the nodes' logs.
func NoFalseDeath(w *World) Verdict {
	v := verdict("no false death", "no signaling node takes a node for dead that was neither killed, frozen nor cut off")
	if w.LogUnknown != "" {
		return v.unchecked("%s", w.LogUnknown)
	}
	for _, e := range w.logged("node down") {
		if !w.Expect.Stays && !w.Expect.Links && slices.ContainsFunc(w.Faults, func(f Fault) bool { return f.Node == e.Node }) {
			continue
		}
		v.broken("%s took %s for dead %s after the fault", e.By, e.Node, e.Time.Sub(w.first()).Round(time.Millisecond))
	}
	return *v
}

// MediaGoesOn checks every stream while packets were lost, late or blocked between nodes.
func MediaGoesOn(w *World) Verdict {
	return undisturbed(w, "media goes on", fmt.Sprintf("while packets are lost, late or blocked no stream pauses for more than %s, and nobody makes a new connection but in a room that has to move", longestPause))
}
