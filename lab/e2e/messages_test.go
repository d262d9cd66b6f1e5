package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/holdfast-rtc/holdfast/internal/child"
	"github.com/holdfast-rtc/holdfast/lab/devcluster"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

const correspondents = 60

var errNotAll = errors.New("not all were answered")

// post is users who write to each other all the time.
type post struct {
	t *testing.T
	*devcluster.Cluster

	users   []*correspondent
	sent    atomic.Int64
	stopped atomic.Bool
	killed  atomic.Bool
	lost    atomic.Int64 // connections that ended before anything was killed
}

// correspondent does what the library does: it repeats what it was not told of, in order, and drops what it has.
type correspondent struct {
	post *post
	name string
	node int

	mu     sync.Mutex // guards the fields below
	seq    uint64
	unsaid []*wire.SendMessage
	states map[string]int
	marks  map[string]uint64
	acks   map[string]wire.StreamMark
	got    []wire.UserMessage
	wrong  error
}

func (p *post) writer(i int) *correspondent {
	return &correspondent{
		post: p, name: fmt.Sprint("writer-", i), node: i%3 + 1,
		states: map[string]int{}, marks: map[string]uint64{}, acks: map[string]wire.StreamMark{},
	}
}

// stay connects to the next node when its socket ends.
func (c *correspondent) stay(ctx context.Context) {
	for ctx.Err() == nil {
		conn, err := connect(ctx, c.post.Cluster, fmt.Sprint("signaling-", c.node), c.name)
		if err == nil {
			c.converse(ctx, conn)
			_ = conn.CloseNow()
			if ctx.Err() == nil && !c.post.killed.Load() {
				c.post.lost.Add(1)
			}
		}
		c.node = c.node%3 + 1
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (c *correspondent) converse(ctx context.Context, conn *websocket.Conn) {
	ctx, cancel := context.WithCancel(ctx)
	var reading sync.WaitGroup
	reading.Go(func() { defer cancel(); c.read(ctx, conn) })
	defer reading.Wait()
	defer cancel()
	c.mu.Lock()
	again := slices.Clone(c.unsaid)
	c.mu.Unlock()
	for _, m := range again {
		if say(ctx, conn, m) != nil {
			return
		}
	}
	tick := time.NewTicker(125 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if !c.post.stopped.Load() && say(ctx, conn, c.next()) != nil || c.acknowledge(ctx, conn) != nil {
			return
		}
	}
}

func (c *correspondent) next() *wire.SendMessage {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seq++
	m := &wire.SendMessage{
		To: wire.List[string]{c.post.users[rand.IntN(correspondents)].name}, Kind: wire.MessageText, Body: []byte(`"hello"`), Stream: "s", Seq: c.seq,
	}
	c.unsaid = append(c.unsaid, m)
	c.post.sent.Add(1)
	return m
}

func (c *correspondent) acknowledge(ctx context.Context, conn *websocket.Conn) error {
	c.mu.Lock()
	m := &wire.Received{}
	for _, mark := range c.acks {
		m.UpTo = append(m.UpTo, mark)
	}
	clear(c.acks)
	c.mu.Unlock()
	if len(m.UpTo) == 0 {
		return nil
	}
	return say(ctx, conn, m)
}

func (c *correspondent) read(ctx context.Context, conn *websocket.Conn) {
	for {
		_, frame, err := conn.Read(ctx)
		if err != nil {
			return
		}
		m, err := wire.DecodeServer(frame)
		if err != nil {
			continue
		}
		c.mu.Lock()
		switch m := m.(type) {
		case *wire.UserMessage:
			if m.Seq > c.marks[m.From] {
				c.marks[m.From] = m.Seq
				c.got = append(c.got, *m)
			}
			c.acks[m.From] = wire.StreamMark{From: m.From, Stream: m.Stream, Seq: c.marks[m.From]}
		case *wire.MessageState:
			c.hear(m)
		}
		c.mu.Unlock()
	}
}

// hear needs c.mu.
func (c *correspondent) hear(m *wire.MessageState) {
	if m.State == "accepted" {
		return
	}
	at := slices.IndexFunc(c.unsaid, func(sent *wire.SendMessage) bool { return sent.Seq == m.Seq })
	if at < 0 {
		return
	}
	c.unsaid = slices.Delete(c.unsaid, at, at+1)
	c.states[m.State]++
	if m.State != "delivered" {
		c.wrong = fmt.Errorf("%w: %d of %s to %s is %s: %s", errStates, m.Seq, c.name, m.To, m.State, m.Message)
	}
}

// moved is how many registrations the nodes moved, and how many users they have.
func (p *post) moved(nodes ...string) (moved, users int) {
	p.t.Helper()
	for _, name := range nodes {
		n, err := p.Node(p.t.Context(), name)
		if err != nil {
			p.t.Fatal(err)
		}
		var answer struct {
			Messages struct{ Moved, Users int }
		}
		if err := p.AdminAt(p.t.Context(), "http://"+n.Addresses[child.AddressHTTP], "process", &answer); err != nil {
			p.t.Fatal(err)
		}
		moved, users = moved+answer.Messages.Moved, users+answer.Messages.Users
	}
	return moved, users
}

// know waits until these are all the signaling nodes that each of them knows.
func (p *post) know(living []string) {
	p.t.Helper()
	eventually(p.t, time.Minute, "the others know that a signaling node is dead", func() error {
		for _, name := range living {
			n, err := p.Node(p.t.Context(), name)
			if err != nil {
				return err
			}
			nodes, err := p.NodesAt(p.t.Context(), "http://"+n.Addresses[child.AddressHTTP]+"/")
			if err != nil {
				return err
			}
			known := 0
			for _, other := range nodes {
				if other.Role == string(devcluster.RoleSignaling) {
					known++
				}
			}
			if known != len(living) {
				return fmt.Errorf("%w: %s knows %d signaling nodes", errNotAll, name, known)
			}
		}
		return nil
	})
}

func (p *post) reaches(n int64) {
	p.t.Helper()
	eventually(p.t, 3*time.Minute, fmt.Sprint(n, " messages are sent"), func() error {
		if sent := p.sent.Load(); sent < n {
			return fmt.Errorf("%w: %d of %d", errNotAll, sent, n)
		}
		return nil
	})
}

// settles waits for the answer to each message.
func (p *post) settles() {
	p.t.Helper()
	p.stopped.Store(true)
	eventually(p.t, time.Minute, "all messages are answered", func() error {
		for _, c := range p.users {
			c.mu.Lock()
			open := len(c.unsaid)
			c.mu.Unlock()
			if open > 0 {
				return fmt.Errorf("%w: %s waits for %d", errNotAll, c.name, open)
			}
		}
		return nil
	})
}

// judge sees that each message is there once and in order.
func (p *post) judge() {
	p.t.Helper()
	got := 0
	for _, c := range p.users {
		c.mu.Lock()
		last := map[string]uint64{}
		for _, m := range c.got {
			if m.Seq <= last[m.From] {
				p.t.Errorf("%s got %d of %s after %d", c.name, m.Seq, m.From, last[m.From])
			}
			last[m.From] = m.Seq
		}
		got += len(c.got)
		if c.wrong != nil {
			p.t.Error(c.wrong)
		}
		c.mu.Unlock()
	}
	if sent := int(p.sent.Load()); got != sent {
		p.t.Errorf("%d messages were sent, %d arrived", sent, got)
	}
}

// TestMessagesSurviveSignalingNodes: three signaling nodes under steady messages; one is added, and one is killed. None is lost, none
// comes twice or out of order, no other socket closes, and about a quarter of the registrations moves to the new node.
func TestMessagesSurviveSignalingNodes(t *testing.T) {
	t.Parallel()
	takes(t, 1)
	p := &post{t: t, Cluster: startCluster(t, devcluster.Options{SFU: 1, Signaling: 4})}
	kill(t, p.Cluster, "signaling-4")
	living := []string{"signaling-1", "signaling-2", "signaling-3"}
	p.know(living)
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	t.Cleanup(func() { cancel(); all.Wait() })
	for i := range correspondents {
		p.users = append(p.users, p.writer(i))
	}
	for _, c := range p.users {
		all.Go(func() { c.stay(ctx) })
	}
	steady, _ := strconv.ParseInt(os.Getenv("HOLDFAST_MESSAGES"), 10, 64)
	steady = max(steady, 1200)
	p.reaches(steady / 3)
	before, _ := p.moved(living...)
	restart(t, p.Cluster, "signaling-4")
	p.reaches(p.sent.Load() + steady/3)
	after, users := p.moved(living...)
	if share := float64(after-before) / float64(users); share < 0.05 || share > 0.5 {
		t.Errorf("%d of %d registrations moved to a fourth node", after-before, users)
	}
	if lost := p.lost.Load(); lost != 0 {
		t.Errorf("%d sockets closed when a node was added", lost)
	}
	p.killed.Store(true)
	kill(t, p.Cluster, "signaling-2")
	p.reaches(p.sent.Load() + steady/3)
	p.settles()
	p.judge()
	t.Logf("%d messages, %d of %d registrations moved", p.sent.Load(), after-before, users)
}
