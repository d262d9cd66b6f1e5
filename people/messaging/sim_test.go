package messaging

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

// world is nodes and pages in virtual time, over a network that loses, repeats and reorders.
type world struct {
	t      testing.TB
	random *rand.Rand
	now    time.Time
	events events
	order  int
	loss   float64

	nodes   map[Peer]*Node // alive
	peers   []Peer         // all that ever were
	pages   []*page
	offline map[UserID]bool
	told    time.Time // until then presence does not know who is online
	silent  bool      // presence does not answer
	paused  map[Peer]*pause
	frames  int
}

// pause is a node that does nothing until it is thawed.
type pause struct {
	frames []func() // wait in its sockets
	lossy  bool     // frames to it are lost instead
}

type event struct {
	at    time.Time
	order int
	do    func()
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at.Before(e[j].at) || e[i].at.Equal(e[j].at) && e[i].order < e[j].order
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

func newWorld(t testing.TB, seed uint64, loss float64) *world {
	return &world{
		t: t, random: rand.New(rand.NewPCG(seed, seed)), now: time.UnixMilli(1_700_000_000_000), loss: loss,
		nodes: map[Peer]*Node{}, offline: map[UserID]bool{}, paused: map[Peer]*pause{},
	}
}

func (w *world) after(d time.Duration, do func()) {
	w.order++
	heap.Push(&w.events, event{w.now.Add(d), w.order, do})
}

// between is a random duration.
func (w *world) between(from, to time.Duration) time.Duration {
	return from + time.Duration(w.random.Int64N(int64(to-from)))
}

// run runs events until done, at most for d of virtual time.
func (w *world) run(d time.Duration, done func() bool) bool {
	end := w.now.Add(d)
	for len(w.events) > 0 && !w.events[0].at.After(end) {
		if done() {
			return true
		}
		e := heap.Pop(&w.events).(event)
		w.now = e.at
		e.do()
	}
	w.now = end
	return done()
}

type wires struct {
	world *world
	from  Peer
}

func (c wires) Send(to Peer, f Frame) {
	w := c.world
	copies := 1
	switch r := w.random.Float64(); {
	case r < w.loss:
		copies = 0
	case r < w.loss*1.3:
		copies = 2
	}
	w.frames++
	for range copies {
		w.after(w.between(time.Millisecond, 15*time.Millisecond), func() {
			w.reach(to, func(n *Node) {
				if w.nodes[c.from] != nil {
					n.Handle(c.from, f)
				}
			})
		})
	}
}

// reach does something at a living node, or when it is thawed.
func (w *world) reach(peer Peer, do func(n *Node)) {
	n, frozen := w.nodes[peer], w.paused[peer]
	switch {
	case n == nil || frozen != nil && frozen.lossy:
	case frozen != nil:
		frozen.frames = append(frozen.frames, func() { do(n) })
	default:
		do(n)
	}
}

// pause freezes a node. The others take it for dead after some time, if it is frozen for that long, and hear of its return.
func (w *world) pause(peer Peer, d time.Duration, lossy bool) {
	w.paused[peer] = &pause{lossy: lossy}
	const detected = 1500 * time.Millisecond
	others := slices.DeleteFunc(w.alive(), func(other Peer) bool { return other == peer })
	dead := d > 2*time.Second
	for _, other := range others {
		if dead {
			w.after(detected+w.between(0, 400*time.Millisecond), func() { w.nodes[other].SetPeers(others) })
		}
	}
	w.after(d, func() {
		frozen := w.paused[peer]
		delete(w.paused, peer)
		for _, do := range frozen.frames {
			do()
		}
		if dead {
			w.spread(50*time.Millisecond, 800*time.Millisecond)
		}
	})
}

type asked struct {
	world *world
	node  Peer
}

func (a asked) Ask(user UserID) {
	a.world.after(3*time.Millisecond, func() {
		if n := a.world.nodes[a.node]; n != nil && !a.world.silent {
			n.Online(user, !a.world.offline[user], !a.world.now.Before(a.world.told))
		}
	})
}

func (w *world) add(name string) Peer {
	peer := Peer{ring.NodeID(name), pin.BootID(fmt.Sprint(w.random.Uint64()))}
	config := DefaultConfig()
	config.Now = func() time.Time { return w.now }
	n := New(peer, config, wires{w, peer}, asked{w, peer})
	w.nodes[peer], w.peers = n, append(w.peers, peer)
	var tick func()
	tick = func() {
		if w.nodes[peer] == n {
			if w.paused[peer] == nil {
				n.Tick()
			}
			w.after(25*time.Millisecond, tick)
		}
	}
	w.after(w.between(0, 25*time.Millisecond), tick)
	return peer
}

func (w *world) alive() []Peer {
	var all []Peer
	for _, peer := range w.peers {
		if w.nodes[peer] != nil {
			all = append(all, peer)
		}
	}
	return all
}

// spread has every node see the change at a time of its own.
func (w *world) spread(from, to time.Duration) {
	for _, peer := range w.alive() {
		w.after(w.between(from, to), func() {
			if n := w.nodes[peer]; n != nil {
				n.SetPeers(w.alive())
			}
		})
	}
}

func (w *world) kill(peer Peer) {
	delete(w.nodes, peer)
	for _, p := range w.pages {
		if p.node == peer {
			p.node, p.client, p.moved = Peer{}, nil, true
			w.after(w.between(50*time.Millisecond, 1500*time.Millisecond), func() { p.connect(w.any()) })
		}
	}
}

func (w *world) any() Peer {
	alive := w.alive()
	return alive[w.random.IntN(len(alive))]
}

// page is a client with the library: it repeats what it was not told of, and drops what it has.
type page struct {
	world  *world
	user   UserID
	stream string
	room   string
	node   Peer
	client *Client
	marks  map[stream]uint64
	got    []Message
	again  int // repeats that were dropped

	seq    uint64
	unsaid []outgoing
	states map[sending]State
	moved  bool // its node died once
}

type sending struct {
	to  UserID
	seq uint64
}

type outgoing struct {
	to UserID
	m  Message
}

func (w *world) page(user UserID, node Peer) *page {
	p := &page{world: w, user: user, stream: fmt.Sprint("s", len(w.pages)), marks: map[stream]uint64{}, states: map[sending]State{}}
	w.pages = append(w.pages, p)
	p.connect(node)
	return p
}

func (p *page) connect(node Peer) {
	w := p.world
	client := &Client{User: p.user, Room: p.room}
	var last time.Time // a socket keeps order
	client.Hand = func(m Message) {
		at := w.now.Add(w.between(time.Millisecond, 10*time.Millisecond))
		if at.Before(last) {
			at = last
		}
		last = at
		w.after(at.Sub(w.now), func() { p.hear(client, node, m) })
	}
	client.Tell = func(s Status) {
		w.after(time.Millisecond, func() { p.told(client, s) })
	}
	p.node, p.client = node, client
	w.nodes[node].Open(client)
	for _, o := range p.unsaid {
		p.post(o)
	}
}

func (p *page) hear(client *Client, node Peer, m Message) {
	if p.client != client || p.world.nodes[node] == nil {
		return
	}
	key := stream{m.From, m.Stream}
	if m.Seq > p.marks[key] {
		p.marks[key] = m.Seq
		p.got = append(p.got, m)
	} else {
		p.again++
	}
	p.world.after(2*time.Millisecond, func() {
		if p.client == client {
			p.world.nodes[node].Received(client, m.From, m.Stream, m.Seq)
		}
	})
}

func (p *page) told(client *Client, s Status) {
	if p.client != client {
		return
	}
	key := sending{s.To, s.Seq}
	if s.State != StateAccepted || p.states[key] == "" {
		p.states[key] = s.State
	}
	if s.State != StateAccepted {
		p.unsaid = slices.DeleteFunc(p.unsaid, func(o outgoing) bool { return o.to == s.To && o.m.Seq == s.Seq })
	}
}

func (p *page) send(to UserID) {
	p.seq++
	o := outgoing{to, Message{From: p.user, Stream: p.stream, Seq: p.seq, Kind: "text", Body: []byte("hello"), Room: p.room}}
	p.unsaid = append(p.unsaid, o)
	if p.client != nil {
		p.post(o)
	}
}

func (p *page) post(o outgoing) {
	if err := p.world.nodes[p.node].Submit(p.client, o.to, o.m); err != nil {
		p.world.t.Fatalf("%s to %s: %v", p.user, o.to, err)
	}
}

func (w *world) settled() bool {
	for _, p := range w.pages {
		if len(p.unsaid) > 0 || p.client == nil {
			return false
		}
	}
	return true
}

// checkOrder sees that nobody got anything twice or out of order.
func (w *world) checkOrder() {
	w.t.Helper()
	for _, p := range w.pages {
		last := map[stream]uint64{}
		for _, m := range p.got {
			key := stream{m.From, m.Stream}
			if m.Seq <= last[key] {
				w.t.Fatalf("%s got %d of %v after %d", p.user, m.Seq, key, last[key])
			}
			last[key] = m.Seq
		}
	}
}

// checkDelivered counts what was said to be delivered, and sees that each of it is with every page of its receiver. Where a
// node died that had the receiver's page, or the sender's, another page of the receiver may be the only one.
func (w *world) checkDelivered() int {
	w.t.Helper()
	type arrival struct {
		at     *page
		stream string
		seq    uint64
	}
	got, devices := map[arrival]bool{}, map[UserID][]*page{}
	for _, p := range w.pages {
		devices[p.user] = append(devices[p.user], p)
		for _, m := range p.got {
			got[arrival{p, m.Stream, m.Seq}] = true
		}
	}
	total, lost := 0, 0
	for _, p := range w.pages {
		for what, state := range p.states {
			if state != StateDelivered {
				w.t.Errorf("%s -> %v: %s", p.user, what, state)
				continue
			}
			total++
			for _, device := range devices[what.to] {
				switch {
				case got[arrival{device, p.stream, what.seq}]:
				case len(devices[what.to]) == 1:
					w.t.Errorf("%s lost %d of %s at %v", what.to, what.seq, p.user, device.node)
				case !device.moved && !p.moved:
					lost++
				}
			}
		}
	}
	if lost > 0 {
		w.t.Errorf("one of two clients lost %d messages", lost)
	}
	return total
}
