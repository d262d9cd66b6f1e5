// Package cluster turns gossip into an immutable view: which nodes are live, their
// addresses and loads, and the ring of the nodes on which rooms can be placed.
//
// It promises:
//   - A view never changes under its reader.
//   - The death or leave of a boot is one event, whatever reports it, and the two are told apart.
//   - A restart under the same name is the death of the old boot.
//   - All gossip is encrypted; what does not decrypt is dropped.
//
// A death is what gossip believes: a process that was only frozen or cut off comes back as
// joined. With Config.ConfirmDeaths a process first sees a dead SFU node as Suspect, and
// declares the death itself.
//
// It is the only package that knows memberlist. It does not know rooms, their pins, the
// store, or how a death is proven.
package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/holdfast-rtc/holdfast/internal/loglimit"
	"github.com/holdfast-rtc/holdfast/internal/panics"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

var errAlreadyRun = errors.New("cluster has already been run")

const (
	mailboxSize = 1024

	remindEvery = 5 * time.Second

	publishAfter = 100 * time.Millisecond

	droppedLogsPerSecond = 0.1
)

// Cluster is this process's membership. It is safe for concurrent use.
type Cluster struct {
	config Config
	name   string
	log    *slog.Logger

	view atomic.Pointer[View]
	// meta is the encoded metadata of this node.
	meta  atomic.Pointer[[]byte]
	local atomic.Pointer[string]
	// addresses are those of the other members.
	addresses addresses
	// liveCount is for memberlist's transmit queue, which asks from its own goroutine.
	liveCount  atomic.Int64
	broadcasts memberlist.TransmitLimitedQueue
	keyring    *memberlist.Keyring
	logLimiter *loglimit.Limiter

	mailbox chan func()
	// reannounce has capacity 1.
	reannounce chan struct{}
	// crash is for tests: it ends the process's gossip without a leave.
	crash chan struct{}
	// older has capacity 1. It receives a newer boot of this node's name; see startup.
	older chan pin.BootID

	// lookup resolves host names. Tests replace it.
	lookup lookup

	// wrap is for tests, which cut sockets off.
	wrap    func(memberlist.NodeAwareTransport) memberlist.Transport
	running chan struct{}
	done    chan struct{}
	ran     atomic.Bool

	// The loop owns the next two.
	members      *members
	startup      startup
	publishTimer <-chan time.Time

	mu            sync.Mutex
	subscriptions []*subscription
	ended         bool
}

// New starts nothing. Until Run, the view has this process alone.
func New(config Config, log *slog.Logger) (*Cluster, error) {
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("cluster configuration: %w", err)
	}
	config.Join = slices.Clone(config.Join)
	keyring, err := memberlist.NewKeyring(config.Keys, config.Keys[0])
	if err != nil {
		return nil, fmt.Errorf("gossip keys: %w", err)
	}
	config.Node.Load = Load{}
	config.Panics = cmp.Or(config.Panics, panics.New())
	c := &Cluster{
		config: config, name: memberName(config.Node), log: log, keyring: keyring,
		mailbox: make(chan func(), mailboxSize), reannounce: make(chan struct{}, 1),
		crash: make(chan struct{}), older: make(chan pin.BootID, 1), running: make(chan struct{}), done: make(chan struct{}),
		members: newMembers(config.Node, log), logLimiter: loglimit.New(droppedLogsPerSecond, 1),
		lookup: net.DefaultResolver.LookupNetIP,
		wrap:   func(t memberlist.NodeAwareTransport) memberlist.Transport { return t },
	}
	c.members.confirmDeaths = config.ConfirmDeaths
	c.startup = startup{self: config.Node, over: !config.RefuseOlderBoot}
	c.broadcasts.RetransmitMult = retransmitMult
	c.broadcasts.NumNodes = func() int { return int(c.liveCount.Load()) }
	text := encodeMeta(config.Node)
	c.meta.Store(&text)
	c.local.Store(&config.Bind)
	c.publish(nil)
	return c, nil
}

// View is never nil and never changes.
func (c *Cluster) View() *View { return c.view.Load() }

// LocalAddr is Config.Bind until Running is closed.
func (c *Cluster) LocalAddr() string { return *c.local.Load() }

// Running is closed when the sockets are open.
func (c *Cluster) Running() <-chan struct{} { return c.running }

// Subscribe delivers the changes that come after it, except those of this node: subscribe first, then read the view.
// Call cancel at the end. The channel closes after cancel, after the end of Run, and when maxPending events were not
// read.
func (c *Cluster) Subscribe() (events <-chan Event, cancel func()) {
	s := newSubscription()
	var delivered sync.WaitGroup
	delivered.Go(s.deliver)
	c.mu.Lock()
	if c.ended {
		s.end()
	} else {
		c.subscriptions = append(c.subscriptions, s)
	}
	c.mu.Unlock()
	return s.events, sync.OnceFunc(func() {
		c.mu.Lock()
		c.subscriptions = slices.DeleteFunc(c.subscriptions, func(other *subscription) bool { return other == s })
		c.mu.Unlock()
		close(s.stop)
		delivered.Wait()
	})
}

// SetLoad gossips a load report if its Seq is higher than that of the last one.
func (c *Cluster) SetLoad(load Load) {
	c.post(func() {
		if c.members.setLoad(c.config.Node, load) {
			c.broadcasts.QueueBroadcast(newBroadcast(message{kind: kindLoad, from: c.config.Node, load: load}))
			c.publishSoon()
		}
	})
}

// SetDraining takes this node off the ring, or puts it back. An overdue drain moves the rooms by restarts.
func (c *Cluster) SetDraining(draining, overdue bool) {
	c.post(func() {
		c.members.setDraining(draining, overdue)
		text := encodeMeta(c.members.live[c.config.Node.Name()])
		c.meta.Store(&text)
		c.publish(nil)
		wake(c.reannounce)
	})
}

// ReportDead removes a media node's boot that was proven dead. The event is queued before it returns. A boot that
// gossip still believes alive is back within twice remindEvery.
func (c *Cluster) ReportDead(id ring.NodeID, boot pin.BootID, why string) {
	c.report((*members).reportDead, id, boot, why)
}

// ConfirmDead is ReportDead for a boot that is Suspect. Other boots stay.
func (c *Cluster) ConfirmDead(id ring.NodeID, boot pin.BootID, why string) {
	c.report((*members).confirmDead, id, boot, why)
}

func (c *Cluster) report(how func(*members, Node, string) []Event, id ring.NodeID, boot pin.BootID, why string) {
	applied := make(chan struct{})
	c.post(func() {
		defer close(applied)
		c.publish(how(c.members, Node{ID: id, Boot: boot, Role: RoleSFU}, why))
	})
	select {
	case <-c.running:
	default:
		return
	}
	select {
	case <-applied:
	case <-c.done:
	}
}

// SetUnreachable names all boots that this process does not hear. They leave this process's ring as long as other
// nodes are on it.
func (c *Cluster) SetUnreachable(boots []pin.BootID) {
	boots = slices.Clone(boots)
	c.post(func() {
		c.members.setUnreachable(boots)
		c.publish(nil)
	})
}

// Run gossips until ctx ends, then says goodbye and returns. It joins the cluster as soon as another member is up.
func (c *Cluster) Run(ctx context.Context) error {
	if !c.ran.CompareAndSwap(false, true) {
		return errAlreadyRun
	}
	var loop sync.WaitGroup
	stop := make(chan struct{})
	loop.Go(func() { c.loop(stop) })
	defer func() {
		close(stop)
		loop.Wait()
		c.mu.Lock()
		defer c.mu.Unlock()
		c.ended = true
		for _, s := range c.subscriptions {
			s.end()
		}
	}()
	return c.gossip(ctx)
}

func (c *Cluster) loop(stop <-chan struct{}) {
	defer close(c.done)
	reminder := time.NewTicker(remindEvery)
	defer reminder.Stop()
	for {
		select {
		case <-reminder.C:
			c.catch("a check of the members broke", func() { c.publish(c.members.remind()) })
		case <-c.publishTimer:
			c.catch("the view broke", func() { c.publish(nil) })
		case task := <-c.mailbox:
			c.catch("a change of the membership broke: it is given up", task)
		case <-stop:
			return
		}
	}
}

// catch runs f, and logs a panic of it.
func (c *Cluster) catch(what string, f func(), attributes ...any) {
	c.config.Panics.Catch(c.log, what, f, attributes...)
}

func (c *Cluster) post(task func()) {
	select {
	case c.mailbox <- task:
	case <-c.done:
	}
}

func (c *Cluster) publishSoon() {
	if c.publishTimer == nil {
		c.publishTimer = time.After(publishAfter)
	}
}

func (c *Cluster) publish(events []Event) {
	c.publishTimer = nil
	c.liveCount.Store(int64(len(c.members.live)))
	c.view.Store(c.members.view())
	if len(events) == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.subscriptions = slices.DeleteFunc(c.subscriptions, func(s *subscription) bool {
		for _, event := range events {
			if !s.push(event) {
				c.log.Error("subscriber to membership does not read: its channel is closed", "unread", maxPending)
				return true
			}
		}
		return false
	})
}

func (c *Cluster) logDropped(what string, err error) {
	if unlogged, ok := c.logLimiter.Next(); ok {
		c.log.Warn(what, "err", err, "unlogged", unlogged)
	}
}
