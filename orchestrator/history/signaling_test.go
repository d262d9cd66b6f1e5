package history

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/orchestrator"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

// signalingNode is one boot: the real Orchestrator, with a late view.
type signalingNode struct {
	world *world
	name  string
	link  *link
	orch  *orchestrator.Orchestrator

	mu    sync.Mutex // guards the fields below
	nodes map[ring.NodeID]cluster.Node
	gone  map[pin.BootID]cluster.Departure
	since map[pin.BootID]int64    // of gone
	dead  map[pin.BootID]bool     // thought dead
	calls map[*justification]bool // of the calls under way
	view  *cluster.View
	names []ring.NodeID // of view
	at    pin.Pin       // of its peers
	top   pin.Fence
}

// newSignalingNode sees the cluster as it is.
func newSignalingNode(w *world, name string) *signalingNode {
	e := &signalingNode{
		world: w, name: name, link: &link{world: w},
		nodes: make(map[ring.NodeID]cluster.Node), gone: make(map[pin.BootID]cluster.Departure),
		since: make(map[pin.BootID]int64), dead: make(map[pin.BootID]bool), calls: make(map[*justification]bool),
	}
	cfg := orchestrator.DefaultConfig()
	switch {
	case w.faults.skew:
		cfg.StoreClock = skewed(w.seed, name)
	case w.faults.setClock:
		sum := fnv.New64a()
		_, _ = sum.Write([]byte(name)) // Never an error.
		e.link.lag = time.Duration(rand.New(rand.NewPCG(w.seed, sum.Sum64())).Int64N(int64(30 * time.Second)))
		cfg.StoreClock = func() time.Time { return w.storeTime(time.Now(), e.link.lag) }
	}
	e.orch = orchestrator.New(e.link, e, e, cfg, quiet)
	e.refreshView()
	return e
}

// skewed is a clock that is wrong by up to half a minute, and jumps once.
func skewed(seed uint64, name string) func() time.Time {
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(name)) // Never an error.
	random := rand.New(rand.NewPCG(seed, sum.Sum64()))
	wrong := func() time.Duration { return time.Duration(random.Int64N(int64(time.Minute))) - 30*time.Second }
	before, after, jump := wrong(), wrong(), time.Now().Add(time.Duration(random.Int64N(int64(length))))
	return func() time.Time {
		now := time.Now()
		if now.Before(jump) {
			return now.Add(before)
		}
		return now.Add(after)
	}
}

// refreshView gives the true view.
func (e *signalingNode) refreshView() {
	live, dead := e.world.truth()
	for _, s := range live {
		e.joined(s.node())
	}
	for _, s := range dead {
		e.lost(s.boot)
	}
}

// View is of Views.
func (e *signalingNode) View() *cluster.View {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.view
}

// draw needs mu.
func (e *signalingNode) draw() {
	v := &cluster.View{Settled: true, Nodes: maps.Clone(e.nodes), Gone: maps.Clone(e.gone)}
	var names []ring.NodeID
	for id := range v.Nodes {
		names = append(names, id)
	}
	slices.Sort(names)
	if e.view != nil && slices.Equal(names, e.names) {
		v.Ring = e.view.Ring
	} else {
		v.Ring = ring.New(names)
	}
	e.view, e.names = v, names
}

// joined: a boot lives; older ones of its name are dead.
func (e *signalingNode) joined(n cluster.Node) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if old, ok := e.nodes[n.ID]; ok && old.Boot != n.Boot {
		if old.Boot.Newer(n.Boot) {
			return
		}
		e.bury(old.Boot)
	}
	delete(e.gone, n.Boot)
	delete(e.dead, n.Boot)
	e.nodes[n.ID] = n
	for _, boot := range e.world.boots(n.ID) {
		if n.Boot.Newer(boot) {
			e.thinksDead(boot)
		}
	}
	e.draw()
}

// lost: a boot is dead, or seems so.
func (e *signalingNode) lost(boot pin.BootID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for id, n := range e.nodes {
		if n.Boot == boot {
			delete(e.nodes, id)
		}
	}
	e.bury(boot)
	e.draw()
}

// bury needs mu.
func (e *signalingNode) bury(boot pin.BootID) {
	if _, ok := e.gone[boot]; !ok {
		e.gone[boot], e.since[boot] = cluster.DepartureDead, e.world.record.now()
	}
	e.thinksDead(boot)
}

// thinksDead gives every call under way a justification against boot. It needs mu.
func (e *signalingNode) thinksDead(boot pin.BootID) {
	e.dead[boot] = true
	for call := range e.calls {
		call.add(boot, thoughtDead)
	}
}

// begin starts a call's justification.
func (e *signalingNode) begin(what kind, about pin.Pin) *justification {
	e.mu.Lock()
	defer e.mu.Unlock()
	why := newJustification()
	for boot := range e.dead {
		why.add(boot, thoughtDead)
	}
	for _, s := range e.world.nodes() {
		if e.view.Nodes[s.id].Boot != s.boot {
			why.add(s.boot, notHeardOf) // Unknown boots cannot be asked.
		}
	}
	switch what {
	case kindRehome:
		why.add(about.Boot, calledDead)
	case kindAgain:
		why.add(about.Boot, hasRefused)
	default:
	}
	e.calls[why] = true
	return why
}

func (e *signalingNode) end(why *justification) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.calls, why)
}

// BootAt is of Prober.
func (e *signalingNode) BootAt(ctx context.Context, control string) (pin.BootID, error) {
	if _, err := probing(ctx, e.world.seed, control); err != nil {
		return "", err
	}
	if _, err := e.unanswered(ctx, control); err != nil {
		return "", err
	}
	live, dead := e.world.truth()
	found := pin.BootID("")
	for _, s := range live {
		if address(s.id) == control {
			found = s.boot
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, s := range dead { // Nobody is there, or another boot.
		if address(s.id) == control {
			e.thinksDead(s.boot)
		}
	}
	if found == "" {
		return "", fmt.Errorf("dial %s: %w", control, orchestrator.ErrNobodyThere)
	}
	return found, nil
}

// Holds is of Prober.
func (e *signalingNode) Holds(ctx context.Context, control string, _ ring.RoomID) (pin.Pin, error) {
	way, err := probing(ctx, e.world.seed, control)
	if err != nil {
		return pin.Pin{}, err
	}
	if unanswered, err := e.unanswered(ctx, control); err != nil {
		asking(ctx).why.add(unanswered, notAnswered)
		return pin.Pin{}, err
	}
	live, _ := e.world.truth()
	for _, s := range live {
		if address(s.id) != control {
			continue
		}
		opening, err := s.owner.Opening(ctx, room)
		if err != nil {
			asking(ctx).why.add(s.boot, notAnswered)
			return pin.Pin{}, err
		}
		_ = way.pause(ctx, 0) // One answer for several.
		s.mu.Lock()
		held := s.held
		s.mu.Unlock()
		if held.IsZero() {
			held = opening
		}
		if !held.IsZero() {
			asking(ctx).why.said(held)
		}
		return held, nil
	}
	return pin.Pin{}, fmt.Errorf("dial %s: %w", control, orchestrator.ErrNobodyThere)
}

// unanswered waits for a mute node.
func (e *signalingNode) unanswered(ctx context.Context, control string) (pin.BootID, error) {
	live, _ := e.world.truth()
	for _, s := range live {
		if address(s.id) == control && s.unanswered.Load() > 0 {
			<-ctx.Done()
			return s.boot, ctx.Err()
		}
	}
	return "", nil
}

// probing is the way to a node and back. Concurrent questions have instants of their own, given by who asks whom
// when.
func probing(ctx context.Context, seed uint64, control string) (*caller, error) {
	id := 1000 + asking(ctx).id*3 + int(control[0]-'a')
	c := newCaller(seed^uint64(time.Now().UnixNano()), "", id)
	return c, c.pause(ctx, c.between(time.Millisecond, 5*time.Millisecond))
}

func (e *signalingNode) reported(n cluster.Node) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if old, ok := e.nodes[n.ID]; ok && old.Boot == n.Boot && old.Load != n.Load {
		e.nodes[n.ID] = n
		e.draw()
	}
}

// ask records one call of the orchestrator.
func (e *signalingNode) ask(c *caller, what kind, about pin.Pin) (pin.Pin, error) {
	ctx, cancel := context.WithTimeout(c.with(context.Background()), 3*time.Second)
	defer cancel()
	c.tried, c.failed, c.signaling, c.what, c.about, c.why = nil, false, e, what, about, e.begin(what, about)
	defer func() {
		e.end(c.why)
		c.signaling, c.why = nil, nil
	}()
	r := e.world.record
	call := r.now()
	var got pin.Pin
	var err error
	e.mu.Lock()
	top := e.top
	e.mu.Unlock()
	switch what {
	case kindRehome:
		got, err = e.orch.Rehome(ctx, room, about, headroom.Room{})
	case kindAgain:
		got, err = e.orch.PlaceAgain(ctx, room, about, headroom.Room{})
	default:
		got, err = e.orch.Place(ctx, room, headroom.Room{})
	}
	if err != nil {
		e.failed(what, err)
		return pin.Pin{}, err
	}
	e.world.oracle.accepted(got, c.why)
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, gone := e.gone[got.Boot]; gone && e.since[got.Boot] < call {
		r.fault("%s was given %s by %s, whose boot it knew to be dead", e.name, show(got), what)
	}
	if got.Fence.Less(top) {
		r.fault("%s was given %s by %s after fence %v", e.name, show(got), what, top)
	}
	if e.top.Less(got.Fence) {
		e.top = got.Fence
	}
	if c.failed { // From memory: its owner has to confirm it.
		r.refused("placed without the store")
		return got, nil
	}
	r.add(input{kind: what, who: c.who, pin: about}, output{pin: got}, call, r.now())
	return got, nil
}

// failed accepts the errors of the contract only.
func (e *signalingNode) failed(what kind, err error) {
	var full *orchestrator.NoHeadroomError
	switch {
	case errors.Is(err, orchestrator.ErrStoreUnavailable):
		e.world.record.refused("store unavailable")
	case errors.Is(err, orchestrator.ErrContended):
		e.world.record.refused("contended")
	case errors.Is(err, orchestrator.ErrNoNodes), errors.As(err, &full):
		e.world.record.refused("no node")
	default:
		e.world.record.fault("%s of %s failed with %v", what, e.name, err)
	}
}

const maxTries = 8

// join places, attaches and follows refusals as package signaling does. It begins at p, if not zero.
func (e *signalingNode) join(c *caller, p pin.Pin) bool {
	var err error
	for range maxTries {
		if p.IsZero() {
			if p, err = e.ask(c, kindPlace, pin.Pin{}); err != nil {
				_ = c.pause(context.Background(), c.between(50*time.Millisecond, 200*time.Millisecond))
				continue
			}
		}
		got, current := e.attach(c, p)
		switch got {
		case replyServed:
			e.mu.Lock()
			e.at = p
			e.mu.Unlock()
			return true
		case replyFenced:
			e.orch.Observe(room, current)
			p = pin.Pin{}
		case replyRefused:
			if p, err = e.ask(c, kindAgain, p); err != nil {
				p = pin.Pin{}
			}
		case replyGone:
			p = pin.Pin{}
			_ = c.pause(context.Background(), c.between(20*time.Millisecond, 100*time.Millisecond))
		default:
			_ = c.pause(context.Background(), c.between(50*time.Millisecond, 200*time.Millisecond))
		}
	}
	return false
}

func (e *signalingNode) attach(c *caller, p pin.Pin) (reply, pin.Fence) {
	ctx := c.with(context.Background())
	_ = c.pause(ctx, c.between(time.Millisecond, 8*time.Millisecond))
	for _, s := range e.world.nodes() {
		if s.id == p.Node && s.boot == p.Boot {
			if s.unanswered.Load() > 0 {
				_ = c.pause(ctx, 500*time.Millisecond)
				return replyUnconfirmed, pin.Fence{}
			}
			got, current := s.attach(ctx, p, c.who)
			_ = c.pause(ctx, c.between(time.Millisecond, 8*time.Millisecond))
			return got, current
		}
	}
	return replyGone, pin.Fence{}
}
