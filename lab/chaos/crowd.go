package chaos

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
	"github.com/holdfast-rtc/holdfast/lab/peer"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// crowd is everybody in the rooms. They stay over all trials, as people do.
type crowd struct {
	chaos    *Chaos
	people   []*person
	browsers []*tab
	step     string          // the armed step of a double fault
	left     map[string]bool // rooms that nobody is in any more
	stack    *peer.Stack

	living context.Context //nolint:containedctx // the people's life, ended by leave
	end    context.CancelFunc
	wg     sync.WaitGroup
}

// person is one synthetic participant.
type person struct {
	room, name string
	peer       *peer.Peer
	leave      context.CancelFunc

	mu      sync.Mutex // guards the fields below
	moments []peer.Moment
	refused error
}

// maxMoments bounds what is kept of one person and one trial; a move makes about ten.
const maxMoments = 500

func newCrowd(c *Chaos) *crowd {
	living, end := context.WithCancel(context.Background())
	return &crowd{chaos: c, living: living, end: end, left: make(map[string]bool)}
}

// join lets everybody in and waits until all receive all.
func (c *crowd) join(ctx context.Context, status devcluster.Status) error {
	nodes := mediaNodes(status)
	var err error
	if c.stack, err = c.newStack(); err != nil {
		return err
	}
	if err := c.openAll(ctx, nodes, ""); err != nil {
		return err
	}
	if err := c.openBrowsers(ctx); err != nil {
		return err
	}
	return c.everybodyReceives(ctx, time.Now(), joinLimit)
}

func mediaNodes(status devcluster.Status) []ring.NodeID {
	var nodes []ring.NodeID
	for _, n := range status.Nodes {
		if n.Role == devcluster.RoleSFU {
			nodes = append(nodes, ring.NodeID(n.Name))
		}
	}
	return nodes
}

// open lets the people of a room join.
func (c *crowd) open(ctx context.Context, room string) error {
	for j := range c.chaos.options.Peers {
		err := c.add(room, fmt.Sprintf("%s-person-%d", room, j+1), c.chaos.options.Peers-1) //nolint:contextcheck // people live until leave, not until ctx ends
		if err != nil {
			return err
		}
		if !wait(ctx, 20*time.Millisecond) { // nobody comes in the same instant as everybody
			return ctx.Err()
		}
	}
	return nil
}

func (c *crowd) add(room, name string, others int) error {
	token, err := c.chaos.cluster.Token(room, name)
	if err != nil {
		return err
	}
	p := &person{room: room, name: name}
	p.peer, err = peer.New(peer.Options{
		URL: c.chaos.page, Token: token, Room: room, Stack: c.stack, Observe: p.observe,
		AudioSlots: min(others, 6), VideoSlots: min(others, 12),
	}, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	c.people = append(c.people, p)
	living, leave := context.WithCancel(c.living)
	p.leave = leave
	c.wg.Go(func() {
		if err := p.peer.Run(living); err != nil {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.refused = err
		}
	})
	return nil
}

// spread lets the people of crowded nodes go to new rooms on nodes that have none: a
// node that was dead comes back empty, and who has all rooms has no healthy neighbour
// to be compared with.
func (c *crowd) spread(ctx context.Context, now Look) error {
	status, err := c.chaos.cluster.Status(ctx)
	if err != nil {
		return err
	}
	nodes := mediaNodes(status)
	rooms := make(map[ring.NodeID][]string)
	for _, h := range now.Held {
		if h.Room != c.browserRoom() {
			rooms[ring.NodeID(h.Node)] = append(rooms[ring.NodeID(h.Node)], h.Room)
		}
	}
	for _, node := range nodes {
		from := slices.MaxFunc(nodes, func(a, b ring.NodeID) int { return cmp.Compare(len(rooms[a]), len(rooms[b])) })
		if len(rooms[node]) > 0 || len(rooms[from]) < 2 {
			continue
		}
		old := rooms[from][0]
		rooms[from] = rooms[from][1:]
		c.close(old)
		if err := c.open(ctx, roomOn(nodes, node, fmt.Sprintf("%sroom%d", c.chaos.prefix(), c.chaos.options.Rooms+len(c.left)))); err != nil {
			return err
		}
	}
	return nil
}

// close lets the people of a room leave it.
func (c *crowd) close(room string) {
	c.left[room] = true
	c.people = slices.DeleteFunc(c.people, func(p *person) bool {
		if p.room == room {
			p.leave()
		}
		return p.room == room
	})
}

// leave ends everybody's life here.
func (c *crowd) leave() {
	c.end()
	c.wg.Wait()
	for _, b := range c.browsers {
		b.page.Close()
	}
}

// roomOn finds a name whose ring owner is the node, so that an idle cluster
// places the room there.
func roomOn(nodes []ring.NodeID, node ring.NodeID, prefix string) string {
	r := ring.New(nodes)
	name := prefix
	for i := range 1000 {
		name = fmt.Sprintf("%s-%d", prefix, i)
		if owner, _ := r.Owner(ring.RoomID(name)); owner == node {
			break
		}
	}
	return name
}

func (p *person) observe(m peer.Moment) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.moments) < maxMoments {
		p.moments = append(p.moments, m)
	}
}

// mark begins a trial: only what comes from now on counts.
func (c *crowd) mark() {
	for _, p := range c.people {
		p.mu.Lock()
		p.moments = nil
		p.mu.Unlock()
	}
}

// flow is one source of one person at another one.
type flow struct {
	room, client, from, source string
	last                       time.Time
}

// flows are all that there should be among the synthetic people. A person who is
// not in yet has a flow without an end.
func (c *crowd) flows() []flow {
	byRoom := make(map[string][]*person)
	stats := make(map[*person]peer.Stats)
	for _, p := range c.people {
		byRoom[p.room] = append(byRoom[p.room], p)
		stats[p] = p.peer.Stats()
	}
	var all []flow
	for room, people := range byRoom {
		for _, receiver := range people {
			for _, sender := range people {
				if sender == receiver {
					continue
				}
				for _, source := range []wire.Source{wire.SourceMicrophone, wire.SourceCamera} {
					id := peer.StreamID{Peer: stats[sender].Peer, Source: source}
					all = append(all, flow{room, receiver.name, sender.name, string(source), stats[receiver].Streams[id].Last})
				}
			}
		}
	}
	return all
}

// receipts says what came after since.
func (c *crowd) receipts(ctx context.Context, since time.Time) []Receipt {
	var all []Receipt
	for _, f := range c.flows() {
		all = append(all, Receipt{Room: f.room, Client: f.client, From: f.from, Source: f.source, Fresh: f.last.After(since)})
	}
	for _, b := range c.browsers {
		all = append(all, b.receipts(ctx, since, len(c.browsers)-1)...)
	}
	return all
}

func (c *crowd) everybodyReceives(ctx context.Context, since time.Time, limit time.Duration) error {
	return poll(ctx, limit, func() error {
		for _, p := range c.people {
			p.mu.Lock()
			err := p.refused
			p.mu.Unlock()
			if err != nil {
				return fmt.Errorf("%s was refused: %w", p.name, err)
			}
		}
		for _, r := range c.receipts(ctx, since) {
			if !r.Fresh {
				return fmt.Errorf("%s: %s has no fresh %s of %s", r.Room, r.Client, r.Source, r.From)
			}
		}
		return nil
	})
}

// attachedFor is how long everybody must have been attached to be believed: the end of
// a socket may be heard late on a busy machine.
const attachedFor = 10

// everybodyAttached waits until every socket is open.
func (c *crowd) everybodyAttached(ctx context.Context) error {
	looks := 0
	return poll(ctx, c.chaos.options.patience.settle, func() error {
		looks++
		for _, p := range c.people {
			if !p.peer.Stats().Attached {
				looks = 0
				return fmt.Errorf("%s has no socket", p.name)
			}
		}
		for _, b := range c.browsers {
			if a, err := b.account(ctx, time.Now()); err != nil || !a.Live {
				looks = 0
				return fmt.Errorf("%s has no socket", b.name)
			}
		}
		if looks < attachedFor {
			return errors.New("everybody has been attached for a moment only")
		}
		return nil
	})
}

// missingMoves says who has not been moved yet although the room had to.
func (c *crowd) missingMoves(w *World) string {
	epochs := make(map[string]uint64)
	for _, h := range w.Before.Held {
		epochs[h.Room] = h.Epoch
	}
	for _, p := range c.people {
		if !w.struckRoom(p.room) {
			continue
		}
		p.mu.Lock()
		back := false
		for _, m := range p.moments {
			back = back || (m.Step == peer.StepFirst && m.Epoch > epochs[p.room])
		}
		p.mu.Unlock()
		if !back {
			return p.name + " has not been moved"
		}
	}
	for _, b := range c.browsers {
		if w.struckRoom(b.room) && !b.moved(c.living, w.first()) {
			return b.name + " has not been moved"
		}
	}
	return ""
}

// clients is everybody's own account of the trial.
func (c *crowd) clients(ctx context.Context, w *World) []Client {
	var all []Client
	for _, p := range c.people {
		client := Client{Name: strings.TrimPrefix(p.name, p.room+"-"), Room: p.room, Streams: 2 * (c.chaos.options.Peers - 1)}
		p.mu.Lock()
		for _, m := range p.moments {
			if m.Step == peer.StepRestart {
				client.Epochs = append(client.Epochs, m.Epoch)
			}
			moment := Moment{Step: string(m.Step), At: m.At}
			if m.Step == peer.StepFirst {
				moment.Stream = fmt.Sprintf("%s/%s", m.Stream.Peer, m.Stream.Source)
			}
			client.Moments = append(client.Moments, moment)
		}
		p.mu.Unlock()
		all = append(all, client)
	}
	for _, b := range c.browsers {
		all = append(all, b.client(ctx, w, len(c.browsers)-1))
	}
	return all
}

var errNotOpen = errors.New("the page has not joined")
