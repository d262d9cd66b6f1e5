package chaos

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/backoff"
	"github.com/holdfast-rtc/holdfast/lab/devcluster"
	"github.com/holdfast-rtc/holdfast/lab/peer"
	"github.com/holdfast-rtc/holdfast/ring"
)

// crowd is everybody in the rooms, over all trials.
type crowd struct {
	chaos    *Chaos
	people   []*person
	browsers []*tab
	large    string          // the room of Options.Large; may be empty
	capped   string          // the full room
	line     []string        // who waits for it
	armed    string          // dies by itself in a double fault
	step     string          // at which armed dies
	left     map[string]bool // empty rooms
	exchange *exchange
	stack    *peer.Stack

	living context.Context //nolint:containedctx // the people's life, ended by leave
	end    context.CancelFunc
	wg     sync.WaitGroup
}

type person struct {
	room, name string
	camera     bool
	people     int // in the room
	speakers   int // of them, if not all
	listens    bool
	messenger  *messenger
	peer       *peer.Peer
	leave      context.CancelFunc

	mu      sync.Mutex // guards the fields below
	moments []peer.Moment
	refused error
}

// Bound for one person and trial; a move makes about ten.
const maxMoments = 500

func newCrowd(c *Chaos) *crowd {
	living, end := context.WithCancel(context.Background())
	return &crowd{chaos: c, living: living, end: end, left: make(map[string]bool), exchange: newExchange()}
}

func (c *crowd) join(ctx context.Context, status devcluster.Status) error {
	nodes := mediaNodes(status)
	video := peer.VideoLight
	if c.chaos.options.Cameras >= 0 || c.chaos.options.spreads() {
		video = peer.VideoSparse
	}
	var err error
	if c.stack, err = peer.NewStack(video); err != nil {
		return err
	}
	if err := c.openAll(ctx, nodes); err != nil {
		return err
	}
	if err := c.openBrowsers(ctx, nodes); err != nil {
		return err
	}
	if err := c.everybodyReceives(ctx, time.Now(), joinLimit); err != nil {
		return err
	}
	if err := c.correspond(ctx); err != nil {
		return err
	}
	return c.queue(ctx)
}

// voices is from how many others a person gets sound.
func (p *person) voices() int {
	switch {
	case p.speakers == 0:
		return p.people - 1
	case p.listens:
		return p.speakers
	default:
		return p.speakers - 1
	}
}

// cameras is how many people of a person's room have a camera on.
func (c *crowd) cameras(p *person) int {
	if p.speakers > 0 {
		return p.speakers
	}
	return c.chaos.options.cameras(p.people)
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

func (c *crowd) open(ctx context.Context, room string, people int) error {
	for j := range people {
		p := &person{room: room, name: fmt.Sprintf("%s-person-%d", room, j+1), people: people, camera: j < c.chaos.options.cameras(people)}
		if room == c.capped && j < inRoom {
			p.messenger = c.exchange.enlist(p.name)
		}
		if err := c.add(p); err != nil { //nolint:contextcheck // people live until leave, not until ctx ends
			return err
		}
		if !backoff.Sleep(ctx, 20*time.Millisecond) { // join one by one
			return ctx.Err()
		}
	}
	return nil
}

// As in the page.
const (
	audioSlots = 6
	videoSlots = 12
)

func (c *crowd) add(p *person) error {
	err := c.start(p)
	if err == nil {
		c.people = append(c.people, p)
	}
	return err
}

func (c *crowd) start(p *person) error {
	holds := 0
	if p.room == c.capped {
		holds = p.people
	}
	token, err := c.chaos.cluster.MessengerToken(p.room, p.name, holds)
	if err != nil {
		return err
	}
	others := p.voices()
	var messages *peer.Messages
	if p.messenger != nil {
		messages = p.messenger.messages
	}
	p.peer, err = peer.New(peer.Options{
		Messages: messages,
		URL:      c.chaos.page, Token: token, Room: p.room, Stack: c.stack, Observe: p.observe, CameraOff: !p.camera, Wait: holds > 0, ListenOnly: p.listens, CountOthers: p.speakers > 0,
		AudioSlots: min(others, audioSlots), VideoSlots: max(1, min(others, videoSlots, c.cameras(p))),
	}, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	if p.messenger != nil {
		p.messenger.peer = p.peer
	}
	c.run(p)
	return nil
}

// run has a person live until leave, of theirs or of the crowd.
func (c *crowd) run(p *person) {
	living, leave := context.WithCancel(c.living)
	p.leave = leave
	c.wg.Go(func() {
		if err := p.peer.Run(living); err != nil {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.refused = err
		}
	})
}

// spread moves people to new rooms on empty nodes: a restarted node is empty, and a full one has no healthy neighbor to compare with.
func (c *crowd) spread(ctx context.Context, now Look) error {
	status, err := c.chaos.cluster.Status(ctx)
	if err != nil {
		return err
	}
	nodes := mediaNodes(status)
	rooms := make(map[ring.NodeID][]string)
	for _, h := range now.Held {
		if h.Room != c.browserRoom() && h.Room != c.large {
			rooms[ring.NodeID(h.Node)] = append(rooms[ring.NodeID(h.Node)], h.Room)
		}
	}
	for _, node := range nodes {
		from := slices.MaxFunc(nodes, func(a, b ring.NodeID) int { return cmp.Compare(len(rooms[a]), len(rooms[b])) })
		if len(rooms[node]) > 0 || len(rooms[from]) < 2 {
			continue
		}
		at := 0
		if rooms[from][0] == c.capped {
			at = 1
		}
		old := rooms[from][at]
		rooms[from] = slices.Delete(rooms[from], at, at+1)
		c.close(old)
		if err := c.open(ctx, roomOn(nodes, node, fmt.Sprintf("%sroom%d", c.chaos.prefix(), c.chaos.options.Rooms+len(c.left))), c.chaos.options.Peers); err != nil {
			return err
		}
	}
	return nil
}

func (c *crowd) close(room string) {
	c.left[room] = true
	c.people = slices.DeleteFunc(c.people, func(p *person) bool {
		if p.room == room {
			p.leave()
		}
		return p.room == room
	})
}

func (c *crowd) leave() {
	c.end()
	c.wg.Wait()
	for _, b := range c.browsers {
		b.page.Close()
	}
}

// roomOn finds a name whose ring owner is the node; an idle cluster places the room there.
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

// short is the name without the room's.
func (p *person) short() string { return strings.TrimPrefix(p.name, p.room+"-") }

func (p *person) observe(m peer.Moment) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.moments) < maxMoments {
		p.moments = append(p.moments, m)
	}
}

// mark begins a trial: it forgets moments and gaps.
func (c *crowd) mark() {
	for _, p := range c.people {
		p.peer.ForgetGaps()
		p.mu.Lock()
		p.moments = nil
		p.mu.Unlock()
	}
}

// everybodyAttached uses steadily: a lost socket may show late.
func (c *crowd) everybodyAttached(ctx context.Context) error {
	return steadily(ctx, c.chaos.options.patience.settle, func() error {
		for _, p := range c.people {
			if !p.peer.Totals().Attached {
				return fmt.Errorf("%s has no socket", p.name)
			}
		}
		for _, b := range c.browsers {
			if a, err := b.account(ctx, time.Now()); err != nil || !a.Live {
				return fmt.Errorf("%s has no socket", b.name)
			}
		}
		return nil
	})
}

func (c *crowd) missingMoves(w *World) string {
	epochs := make(map[string]uint64)
	for _, h := range w.Before.Held {
		epochs[h.Room] = h.Epoch
	}
	for _, p := range c.people {
		if !w.struckClient(Client{Name: p.short(), Room: p.room}) {
			continue
		}
		p.mu.Lock()
		back := false
		for _, m := range p.moments {
			// The epoch may be told after the first packet of a standby.
			back = back || (m.Step == peer.StepFirst && (m.Epoch > epochs[p.room] || (m.Hop > 0 || w.Spread.is(p.room)) && m.At.After(w.first())))
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

// streams is how many streams a person surely gets again; if not everybody has a slot, one audio stream.
func (c *crowd) streams(p *person) int {
	sounds, cameras := p.voices(), c.cameras(p)
	if sounds > audioSlots {
		sounds = 1
	}
	if p.camera {
		cameras--
	}
	return sounds + cameras
}

func (c *crowd) clients(ctx context.Context, w *World) []Client {
	var all []Client
	for _, p := range c.people {
		client := Client{Name: p.short(), Room: p.room, Streams: c.streams(p), FewSlots: p.voices() > audioSlots}
		p.mu.Lock()
		for _, m := range p.moments {
			if m.Step == peer.StepRestart || m.Step == peer.StepContinued {
				client.Epochs = append(client.Epochs, m.Epoch)
			}
		}
		client.Moments = p.moments
		if p.refused != nil {
			client.Refused = p.refused.Error()
		}
		p.mu.Unlock()
		if w.Spread.is(p.room) {
			c.account(w, p, &client)
		}
		all = append(all, client)
	}
	for _, b := range c.browsers {
		all = append(all, b.client(ctx, w, len(c.browsers)-1))
	}
	return all
}
