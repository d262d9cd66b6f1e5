package sfu

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

const (
	modelCap   = 7
	modelGrace = 6 * time.Second
	modelRoom  = "room"
	// modelSeeds is how many histories the suite plays. HOLDFAST_MODEL_SEEDS=20000 plays more, and HOLDFAST_MODEL_SEED=7 the seventh, with
	// both so many from there on.
	modelSeeds = 300
	modelSteps = 30
)

// TestRoomsOnSeveralNodesKeepTheirPromises plays random histories of a room on several nodes: people come, go, speak and are removed, the
// room spreads, is gathered and moves, links are cut, and nodes die. Rooms, links and people are those of production in virtual time;
// media are not carried. An oracle judges what must hold all the time, and what must hold once all is quiet.
func TestRoomsOnSeveralNodesKeepTheirPromises(t *testing.T) {
	t.Parallel()
	first, seeds := 1, modelSeeds
	if n, err := strconv.Atoi(os.Getenv("HOLDFAST_MODEL_SEED")); err == nil {
		first, seeds = n, 1
	}
	if n, err := strconv.Atoi(os.Getenv("HOLDFAST_MODEL_SEEDS")); err == nil {
		seeds = n
	}
	for seed := first; seed < first+seeds && !t.Failed(); seed++ {
		synctest.Test(t, func(t *testing.T) { play(t, uint64(seed)) })
	}
}

// history is what happened, told when a promise was broken.
type history struct {
	mu   sync.Mutex
	said bytes.Buffer
}

func (h *history) Write(line []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.said.Write(line)
}

// world is the cluster of a history: its media nodes, the pin of its only room, and the people who want to be there.
type world struct {
	t       *testing.T
	seed    uint64
	random  *rand.Rand
	history *history
	names   []string
	people  []*person
	lines   int // of the chat, so far

	mu        sync.Mutex // guards the fields below
	processes map[string]*process
	cables    []cable
	severed   map[[2]*process]bool
	pinned    pin.Pin
	removed   map[string]bool
}

// Confirm, Opening and StoreSteadyFor are an Owner whose store is the world.
func (w *world) Confirm(_ context.Context, _ ring.RoomID, p pin.Pin) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p.Fence == w.pinned.Fence {
		return nil
	}
	return &pin.FencedError{Current: w.pinned}
}

func (w *world) Opening(context.Context, ring.RoomID) (pin.Pin, error) { return pin.Pin{}, nil }
func (w *world) StoreSteadyFor() time.Duration                         { return time.Hour }

func (w *world) pin() pin.Pin {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.pinned
}

func (w *world) note(format string, args ...any) {
	_, _ = fmt.Fprintf(w.history, "%s -- %s\n", time.Now().Format("05.000"), fmt.Sprintf(format, args...))
}

func (w *world) broken(format string, args ...any) {
	w.t.Helper()
	w.history.mu.Lock()
	said := w.history.said.String()
	w.history.mu.Unlock()
	w.t.Fatalf("seed %d: %s\n%s", w.seed, fmt.Sprintf(format, args...), said)
}

func play(t *testing.T, seed uint64) {
	t.Helper()
	w := &world{
		t: t, seed: seed, random: rand.New(rand.NewPCG(seed, 1)), history: &history{}, //nolint:gosec // repeatable
		processes: map[string]*process{}, severed: map[[2]*process]bool{}, removed: map[string]bool{},
	}
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		w.names = append(w.names, name)
		w.processes[name] = w.startProcess(name)
	}
	w.pinTo("a")
	for i := range modelCap + 2 {
		w.people = append(w.people, &person{world: w, id: fmt.Sprintf("p%d", i)})
	}
	defer w.end()
	for range modelSteps {
		w.step()
		w.wait(time.Duration(w.random.IntN(1500)) * time.Millisecond)
		w.judgeAlways()
		if w.random.IntN(10) == 0 {
			w.judgeQuiet()
		}
	}
	w.judgeQuiet()
	for _, p := range w.people {
		p.leave()
	}
	w.wait(2 * time.Minute)
	for _, name := range w.names {
		if p := w.reach(name); p != nil {
			p.node.mu.Lock()
			rooms, branches := len(p.node.rooms), len(p.node.branches)
			p.node.mu.Unlock()
			if rooms+branches > 0 {
				w.broken("everybody has left, and %s has %d rooms and %d branches", name, rooms, branches)
			}
		}
	}
}

// wait lets virtual time pass.
func (w *world) wait(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // the bubble's clock: no time passes
	synctest.Wait()
}

// end stops everything.
func (w *world) end() {
	for _, p := range w.people {
		p.disconnect()
	}
	for _, name := range w.names {
		if p := w.processes[name]; p.alive.Err() == nil {
			w.pull(p, nil)
			p.stop(w.t)
		}
	}
	w.wait(time.Minute)
}

// pinTo has the store name a node under a higher fence.
func (w *world) pinTo(name string) pin.Pin {
	w.mu.Lock()
	defer w.mu.Unlock()
	cfg := w.processes[name].node.cfg
	w.pinned = pin.Pin{Fence: pin.Fence{Epoch: w.pinned.Fence.Epoch + 1, Nonce: 7}, Node: cfg.Node, Boot: cfg.Boot, Control: cfg.Control}
	return w.pinned
}

// step does one thing at random.
func (w *world) step() {
	who := w.people[w.random.IntN(len(w.people))]
	switch w.random.IntN(17) {
	case 0, 1, 2, 3:
		who.join()
	case 4:
		who.leave()
	case 5:
		who.reconnect(time.Duration(w.random.IntN(3000)) * time.Millisecond)
	case 6, 7:
		w.lines++
		w.note("%s says %d", who.id, w.lines)
		who.say(&control.PeerMessage{Message: &control.PeerMessage_Say{Say: &control.Say{Text: strconv.Itoa(w.lines), Id: strconv.Itoa(w.lines)}}})
	case 8:
		who.say(&control.PeerMessage{Message: &control.PeerMessage_Rename{Rename: &control.Rename{Name: "name-" + strconv.Itoa(w.random.IntN(100))}}})
	case 9:
		who.say(&control.PeerMessage{Message: &control.PeerMessage_Hand{Hand: &control.Hand{Raised: w.random.IntN(2) == 0}}})
	case 10, 11:
		w.spreads(false)
	case 12:
		w.spreads(true)
	case 13:
		w.cutsALink()
	case 14:
		w.kills()
	case 15:
		w.drains()
	case 16:
		if w.random.IntN(3) == 0 {
			w.removes(who)
		} else {
			w.moves()
		}
	}
}

// owner is the process of the pin, or nil.
func (w *world) owner() *process { return w.reach(string(w.pin().Node)) }

func (w *world) spreads(gather bool) {
	owner := w.owner()
	if owner == nil {
		return
	}
	reply, err := (&service{node: owner.node}).Spread(context.Background(), &control.SpreadRequest{Room: modelRoom, Gather: gather, Why: "the model"})
	w.note("spread gather=%v: held %v, %v", gather, reply.GetHeld(), err)
}

// members are the nodes of the room's branches, as the owner has them.
func (w *world) members() (all []*process) {
	owner := w.owner()
	if owner == nil {
		return nil
	}
	_, _ = (&service{node: owner.node}).onLoop(context.Background(), modelRoom, func(r *room) {
		for _, name := range slices.Sorted(maps.Keys(r.members.branches)) {
			if p := w.reach(name); p != nil {
				all = append(all, p)
			}
		}
	})
	return all
}

// cutsALink breaks what joins the owner and a branch, for a while or for a moment.
func (w *world) cutsALink() {
	members := w.members()
	if len(members) == 0 {
		return
	}
	owner, branch := w.owner(), members[w.random.IntN(len(members))]
	lasts := time.Duration(w.random.IntN(2)*w.random.IntN(5000)) * time.Millisecond
	w.note("the link of %s and %s is cut for %v", owner.node.cfg.Node, branch.node.cfg.Node, lasts)
	pair := [2]*process{owner, branch}
	w.mu.Lock()
	w.severed[pair] = true
	w.mu.Unlock()
	w.pull(owner, branch)
	time.AfterFunc(lasts, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.severed, pair)
	})
}

// drains has a branch take nobody more, for a while.
func (w *world) drains() {
	members, take := w.members(), 0
	for _, p := range w.processes {
		if p.takesRooms() {
			take++
		}
	}
	if len(members) == 0 || take < 3 {
		return
	}
	branch := members[w.random.IntN(len(members))]
	w.note("branch %s drains", branch.node.cfg.Node)
	branch.node.StartDrain(Drain{})
	time.AfterFunc(time.Duration(w.random.IntN(8000))*time.Millisecond, func() { branch.node.Undrain() })
}

// kills ends a node that has a part of the room. Three nodes live to the end of a history.
func (w *world) kills() {
	living := 0
	for _, name := range w.names {
		if w.reach(name) != nil {
			living++
		}
	}
	members := w.members()
	owner := w.owner()
	if living <= 3 || owner == nil {
		return
	}
	if len(members) > 0 && w.random.IntN(2) == 0 {
		branch := members[w.random.IntN(len(members))]
		w.note("branch %s dies", branch.node.cfg.Node)
		w.pull(branch, nil)
		branch.stop(w.t)
		return
	}
	w.note("owner %s dies", owner.node.cfg.Node)
	w.pull(owner, nil)
	owner.stop(w.t)
	w.wait(time.Duration(w.random.IntN(60)) * time.Millisecond)
	w.rehomes(members)
}

// rehomes has the store name another node, a branch if there is one, as failover does.
func (w *world) rehomes(members []*process) {
	var to []string
	for _, m := range members {
		if m.takesRooms() {
			to = append(to, string(m.node.cfg.Node))
		}
	}
	for _, name := range w.names {
		if p := w.processes[name]; len(to) == 0 && p.takesRooms() {
			to = append(to, name)
		}
	}
	p := w.pinTo(to[w.random.IntN(len(to))])
	w.note("the room is re-homed to %s, epoch %d", p.Node, p.Fence.Epoch)
	w.toldOfThePin()
}

// moves gives the room to another node while all are well.
func (w *world) moves() {
	owner := w.owner()
	if owner == nil {
		return
	}
	var to []string
	for _, name := range w.names {
		if p := w.processes[name]; p != owner && p.takesRooms() {
			to = append(to, name)
		}
	}
	if len(to) == 0 {
		return
	}
	p := w.pinTo(to[w.random.IntN(len(to))])
	w.note("the room is moved to %s, epoch %d", p.Node, p.Fence.Epoch)
	_, _ = (&service{node: owner.node}).Outrank(context.Background(), &control.OutrankRequest{Room: modelRoom, Pin: control.PinProto(p), Live: true})
	w.toldOfThePin()
}

// toldOfThePin has signaling nodes follow a new pin, whatever media nodes say.
func (w *world) toldOfThePin() {
	for _, p := range w.people {
		p.follow()
	}
}

func (w *world) removes(who *person) {
	owner := w.owner()
	if owner == nil {
		return
	}
	reply, err := (&service{node: owner.node}).Remove(context.Background(), &control.RemoveRequest{Room: modelRoom, Peer: who.id})
	w.note("%s is removed: %v, %v", who.id, reply, err)
	if len(reply.GetRemoved()) > 0 {
		w.mu.Lock()
		w.removed[who.id] = true
		w.mu.Unlock()
	}
}

// seenRoom is a room at one process, as its loop has it.
type seenRoom struct {
	at      *process
	owns    bool
	pin     pin.Pin
	peers   map[string]*control.Peer
	here    map[string]uint64 // generations of those whose place it is
	expects []string
	stuck   int
}

func (w *world) rooms() (all []seenRoom) {
	for _, name := range w.names {
		p := w.reach(name)
		if p == nil {
			continue
		}
		p.node.mu.Lock()
		found := map[*room]bool{}
		for _, r := range p.node.rooms {
			found[r] = true
		}
		for _, r := range p.node.branches {
			found[r] = false
		}
		p.node.mu.Unlock()
		for r, owns := range found {
			seen := seenRoom{at: p, owns: owns, pin: r.pin(), peers: map[string]*control.Peer{}, here: map[string]uint64{}}
			if r.do(context.Background(), func() {
				for id, q := range r.peers {
					seen.peers[string(id)] = proto.CloneOf(q.entry)
					switch {
					case q.expected:
						seen.expects = append(seen.expects, string(id))
					case q.place == nil:
						seen.here[string(id)] = q.generation
					}
				}
				seen.stuck = len(r.branch.entering)
			}) == nil {
				all = append(all, seen)
			}
		}
	}
	return all
}

// judgeAlways is what holds at every moment: the cap, at the node of the pin.
func (w *world) judgeAlways() {
	w.t.Helper()
	for _, r := range w.rooms() {
		if r.owns && r.pin.Fence == w.pin().Fence && len(r.peers) > modelCap {
			w.broken("%d people are in the room of %d", len(r.peers), modelCap)
		}
	}
}

// judgeQuiet lets the room come to rest, and judges it whole.
func (w *world) judgeQuiet() {
	w.t.Helper()
	w.wait(25 * time.Second)
	inside := map[string]bool{}
	for _, p := range w.people {
		if p.inside() {
			inside[p.id] = true
		}
	}
	owners, places, roster := 0, map[string]string{}, map[string]*control.Peer{}
	for _, r := range w.rooms() {
		node := string(r.at.node.cfg.Node)
		switch {
		case r.owns && r.pin.Fence == w.pin().Fence:
			owners++
			roster = r.peers
			if len(r.expects) > 0 {
				w.broken("%s still expects %v", node, r.expects)
			}
		case r.owns && len(r.here) > 0:
			w.broken("%s owns the room under %v, and the pin is %v", node, r.pin, w.pin())
		case !r.owns && len(r.here) > 0 && r.pin.Fence != w.pin().Fence:
			w.broken("branch %s serves %v under %v, and the pin is %v", node, r.here, r.pin, w.pin())
		}
		for id := range r.here {
			if other, twice := places[id]; twice {
				w.broken("%s is at %s and at %s", id, other, node)
			}
			places[id] = node
		}
		if r.stuck > 0 {
			w.broken("%d wait for the owner's word at %s", r.stuck, node)
		}
	}
	if owners > 1 || owners == 0 && len(inside) > 0 {
		w.broken("%d nodes own the room, in which %v are", owners, slices.Sorted(maps.Keys(inside)))
	}
	if got, want := slices.Sorted(maps.Keys(places)), slices.Sorted(maps.Keys(inside)); !slices.Equal(got, want) {
		w.broken("%v have a place, %v want one", got, want)
	}
	if got := slices.Sorted(maps.Keys(roster)); owners == 1 && !slices.Equal(got, slices.Sorted(maps.Keys(inside))) {
		w.broken("the owner's roster is %v, and inside are %v", got, slices.Sorted(maps.Keys(inside)))
	}
	for _, r := range w.rooms() {
		if len(r.here) > 0 {
			w.sameRoster(string(r.at.node.cfg.Node), r.peers, roster)
		}
	}
	for _, p := range w.people {
		if inside[p.id] {
			w.sameRoster(p.id+" at "+places[p.id], p.roster(), roster)
		}
	}
	w.sameChat()
}

// sameRoster compares what somebody knows of the room with the owner's roster.
func (w *world) sameRoster(who string, told, roster map[string]*control.Peer) {
	w.t.Helper()
	describe := func(peers map[string]*control.Peer) string {
		var all []string
		for id, p := range peers {
			all = append(all, fmt.Sprintf("%s=%s/%v", id, p.GetName(), p.GetHandRaisedUnixMs()))
		}
		slices.Sort(all)
		return strings.Join(all, " ")
	}
	if got, want := describe(told), describe(roster); got != want {
		w.broken("%s knows\n%s, and the owner's roster is\n%s", who, got, want)
	}
}

// sameChat: everybody hears lines in the same order.
func (w *world) sameChat() {
	w.t.Helper()
	before := map[[2]string]string{}
	for _, p := range w.people {
		heard := p.heard()
		for i, line := range heard {
			for _, earlier := range heard[:i] {
				if who, other := before[[2]string{line, earlier}]; other {
					w.broken("%s heard line %s before %s, and %s after it", who, line, earlier, p.id)
				}
				before[[2]string{earlier, line}] = p.id
			}
		}
	}
}
