// Package cluster turns gossip into an immutable view: who is live, at which
// addresses, under what load, and the ring of the nodes that rooms can be placed on.
//
// It promises that a view never changes under its reader; that a boot's death or leave
// is one event, whether gossip says it, a proof does, or both; that a leave and a
// death are told apart; and that a restart under the same name is the death of
// the old boot. A death is what gossip believes: a process that was only frozen or cut off
// comes back as joined. A process that has evidence of its own about SFU nodes (Config.Witnessed) sees them
// doubted first, and says itself when they are dead. All gossip is encrypted, and what does not decrypt is dropped.
//
// It is the only package that knows memberlist. It does not know rooms, pins of rooms,
// the store, or how a death is proven.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

// ErrAlreadyRun is returned by a second Run: a boot runs once.
var ErrAlreadyRun = errors.New("cluster has already been run")

// mailboxSize is how many callbacks may wait for the loop, which handles one in
// microseconds. When it is full, membership waits (and memberlist with it; the loop
// never waits for memberlist), and gossiped messages are dropped: the next report
// or state exchange makes up for them.
const mailboxSize = 1024

// remindEvery is how often the boots that are not used though memberlist takes them for alive are looked at. It is
// far above the time in which memberlist notices a death.
const remindEvery = 5 * time.Second

// publishAfter is how long a new load waits for others, so that a view is made for all of them: with a thousand nodes one
// takes a third of a millisecond. Changes of membership do not wait.
const publishAfter = 100 * time.Millisecond

// Cluster is this process's membership. Its methods may be called from any
// goroutine.
type Cluster struct {
	config Config
	name   string // our member name
	log    *slog.Logger

	view       atomic.Pointer[View]
	meta       atomic.Pointer[[]byte] // our encoded metadata
	local      atomic.Pointer[string] // the bound gossip address
	addresses  addresses              // of the others
	liveCount  atomic.Int64           // for the transmit queue
	broadcasts memberlist.TransmitLimitedQueue
	complaints complaints

	mailbox    chan func()
	reannounce chan struct{} // capacity 1: our metadata has changed
	crash      chan struct{} // tests: end without leaving
	running    chan struct{} // closed when the loop takes tasks
	done       chan struct{} // closed when it no longer does
	ran        atomic.Bool

	members *members         // the loop's, and New's before it
	soon    <-chan time.Time // the loop's: when to publish what changed; nil while nothing has

	mu            sync.Mutex // guards the fields below
	subscriptions []*subscription
	ended         bool
}

// New checks the configuration. It opens nothing and starts nothing; until Run
// the view holds this process alone.
func New(config Config, log *slog.Logger) (*Cluster, error) {
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("cluster configuration: %w", err)
	}
	config.Key, config.Join = slices.Clone(config.Key), slices.Clone(config.Join)
	config.Node.Load = Load{}
	c := &Cluster{
		config: config, name: memberName(config.Node), log: log,
		mailbox: make(chan func(), mailboxSize), reannounce: make(chan struct{}, 1),
		crash: make(chan struct{}), running: make(chan struct{}), done: make(chan struct{}),
		members: newMembers(config.Node, log),
	}
	c.members.witnessed = config.Witnessed
	c.broadcasts.RetransmitMult = retransmitMult
	c.broadcasts.NumNodes = func() int { return int(c.liveCount.Load()) }
	text := encodeMeta(config.Node)
	c.meta.Store(&text)
	c.local.Store(&config.Bind)
	c.publish(nil)
	return c, nil
}

// View returns the present picture. It is never nil and never changes.
func (c *Cluster) View() *View { return c.view.Load() }

// LocalAddr is the host:port at which the others reach our gossip. Until Run has opened
// the sockets it is Bind as configured; Running tells when.
func (c *Cluster) LocalAddr() string { return *c.local.Load() }

// Running is closed once Run has opened the sockets.
func (c *Cluster) Running() <-chan struct{} { return c.running }

// Subscribe gives the changes of membership from now on, except our own. To miss nothing,
// subscribe first and read the view then; the view already shows an event when it
// arrives. cancel must be called; afterwards, and when Run has ended, the channel is closed.
//
// A slow subscriber holds up nobody. What waits for it is merged per boot: a death or leave replaces
// what waits of that boot and is never dropped (see subscription.push). After 1024 unread events of distinct boots the
// channel is closed and an error logged; View().Gone then has the deaths.
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

// SetLoad shows a load report in our own view and gossips it. Reports whose Seq is
// not above the last one are ignored, here as everywhere.
func (c *Cluster) SetLoad(load Load) {
	c.post(func() {
		if c.members.setLoad(c.config.Node, load) {
			c.broadcasts.QueueBroadcast(newBroadcast(message{kind: kindLoad, from: c.config.Node, load: load}))
			c.publishSoon()
		}
	})
}

// SetDraining takes this node off the ring, or puts it back, here at once and
// elsewhere by gossip.
func (c *Cluster) SetDraining(draining bool) {
	c.post(func() {
		c.members.setDraining(draining)
		text := encodeMeta(c.members.live[c.config.Node.Name()])
		c.meta.Store(&text)
		c.publish(nil)
		select {
		case c.reannounce <- struct{}{}:
		default: // One is waiting, and will read the metadata just stored.
		}
	})
}

// ReportDead says that a boot of a media node was proven dead elsewhere. When it returns, the view no
// longer has it and the event is under way; what gossip says of this death later is no
// second event. Before Run it takes effect when Run starts. Our own boot, and one already gone,
// are ignored. A boot that gossip goes on taking for alive is live again after remindEvery to twice that.
func (c *Cluster) ReportDead(id ring.NodeID, boot pin.BootID, why string) {
	c.report((*members).reportDead, id, boot, why)
}

// ConfirmDead is ReportDead for a boot that is Doubted in the view. It does nothing when gossip has taken its word back meanwhile.
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

// SetSilent says which boots this process has no contact with at the moment: they get no new rooms from here, as
// long as there are others. It says nothing to anybody else, makes no event, and is taken back by the next call.
func (c *Cluster) SetSilent(boots []pin.BootID) {
	boots = slices.Clone(boots)
	c.post(func() {
		c.members.setSilent(boots)
		c.publish(nil)
	})
}

// Run opens the gossip sockets, joins the cluster, keeps trying where the others are
// not up yet, and owns everything until ctx ends: then it tells the others that we
// leave, and returns when that is said. It runs once.
func (c *Cluster) Run(ctx context.Context) error {
	if !c.ran.CompareAndSwap(false, true) {
		return ErrAlreadyRun
	}
	var loop sync.WaitGroup
	stop := make(chan struct{})
	loop.Go(func() { c.loop(stop) })
	defer func() {
		close(stop)
		loop.Wait()
		c.endSubscriptions()
	}()
	return c.gossip(ctx)
}

// loop is the one goroutine that touches members.
func (c *Cluster) loop(stop <-chan struct{}) {
	defer close(c.done)
	reminder := time.NewTicker(remindEvery)
	defer reminder.Stop()
	for {
		select {
		case <-reminder.C:
			c.publish(c.members.remind())
		case <-c.soon:
			c.publish(nil)
		case task := <-c.mailbox:
			task()
		case <-stop:
			return
		}
	}
}

// post hands a task to the loop; after the loop's end it does nothing.
func (c *Cluster) post(task func()) {
	select {
	case c.mailbox <- task:
	case <-c.done:
	}
}

// postOrDrop is post for what may be lost.
func (c *Cluster) postOrDrop(task func()) {
	select {
	case c.mailbox <- task:
	default:
	}
}

// publishSoon is publish within publishAfter.
func (c *Cluster) publishSoon() {
	if c.soon == nil {
		c.soon = time.After(publishAfter)
	}
}

// publish shows the members' present state to readers and then the events to
// subscribers.
func (c *Cluster) publish(events []Event) {
	c.soon = nil
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

// endSubscriptions closes every subscriber's channel.
func (c *Cluster) endSubscriptions() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	for _, s := range c.subscriptions {
		s.end()
	}
}
