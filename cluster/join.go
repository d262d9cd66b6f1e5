package cluster

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"
)

const (
	// The back-off while no seed has answered, and while we are lonely: quick at first, because the processes
	// of a cluster usually start together.
	joinBackoffFirst = 100 * time.Millisecond
	joinBackoffMost  = 2 * time.Second

	// rejoinEvery is how often seeds are asked again once all is well. memberlist forgets dead
	// members after GossipToTheDeadTime, so two halves of a network that was cut for longer would
	// otherwise never meet again.
	rejoinEvery = 30 * time.Second

	// countEvery is how often it is looked whether we have become lonely meanwhile.
	countEvery = time.Second

	// lonelyFor is how long members are remembered who are not heard any more. They may go one after the
	// other; whoever has not answered by then is taken to be gone for good.
	lonelyFor = 5 * time.Minute

	// maxFriends bounds the members that are remembered to be asked when we are lonely.
	maxFriends = 8
)

// company is the most that a node has seen of late.
type company struct {
	members int      // itself included
	friends []string // addresses of some others
	since   time.Time
}

// lonely says whether half of those who were here, or all, are not heard any more. Then it is likely
// that it is we who are cut off; and in memberlist both sides have given the other up and ask nobody there.
func (c company) lonely(now int) bool { return now < 2 || 2*now <= c.members }

// look takes stock. When there were more it keeps what it knew, for a while.
func (c company) look(now int, friends []string, at time.Time) company {
	if now < c.members && at.Sub(c.since) < lonelyFor {
		return c
	}
	rand.Shuffle(len(friends), func(i, j int) { friends[i], friends[j] = friends[j], friends[i] })
	return company{members: now, friends: friends[:min(len(friends), maxFriends)], since: at}
}

// joinSeeds exchanges states with the seeds: with back-off until the view has settled and whenever we
// are lonely, every rejoinEvery otherwise. A lonely node also asks members of before, for it may be
// its own seed. The exchange itself posts what it learns.
func (c *Cluster) joinSeeds(ctx context.Context, list *memberlist.Memberlist) {
	if len(c.config.Join) == 0 {
		return
	}
	backoff := joinBackoffFirst
	var before company
	for ctx.Err() == nil {
		joined := c.ask(ctx, list, c.config.Join)
		if before.lonely(c.present()) {
			joined += c.ask(ctx, list, before.friends)
		}
		lonely := before.lonely(c.present())
		before = before.look(c.present(), c.addresses.all(), time.Now())
		// A seed may be our own address, so an answer alone does not count.
		if joined == 0 || lonely {
			pause(ctx, backoff/2+rand.N(backoff)) // Jitter.
			backoff = min(2*backoff, joinBackoffMost)
			continue
		}
		backoff = joinBackoffFirst
		for waited := time.Duration(0); waited < rejoinEvery && !before.lonely(c.present()) && pause(ctx, countEvery); {
			waited += countEvery
			before = before.look(c.present(), c.addresses.all(), time.Now())
		}
	}
}

// ask exchanges states with whoever answers at these addresses, and counts them.
func (c *Cluster) ask(ctx context.Context, list *memberlist.Memberlist, addresses []string) (joined int) {
	for _, address := range addresses {
		if ctx.Err() != nil {
			return joined
		}
		n, err := list.Join([]string{address})
		if err != nil {
			c.log.Debug("seed not reached", "seed", address, "err", err)
		}
		joined += n
	}
	return joined
}

// present counts the members that gossip takes for live, ourselves included.
func (c *Cluster) present() int {
	view := c.View()
	n := len(view.Signaling)
	for _, node := range view.Nodes {
		if !node.Doubted {
			n++
		}
	}
	return n
}

const (
	// exchangeEvery is how often states are exchanged by TCP with one of the members that no datagram gets through to, chosen at
	// random. Everybody does so, and news doubles each time: it reaches all of a hundred in three to four seconds.
	exchangeEvery = 500 * time.Millisecond

	// warnBlockedEvery is how often it is said that datagrams do not get through.
	warnBlockedEvery = 5 * time.Minute
)

// exchangeWithBlocked makes up for gossip where UDP is blocked and TCP is not. memberlist pings by TCP then, so nobody is
// given up; but all other news would wait for the exchanges of pushPullInterval.
func (c *Cluster) exchangeWithBlocked(ctx context.Context, list *memberlist.Memberlist, probeInterval time.Duration) {
	var warned time.Time // zero while nobody is blocked
	for pause(ctx, exchangeEvery) {
		// Each member pings every other once in as many intervals as there are others: three in a row are lost, and two seconds' worth.
		blocked := c.addresses.unheard(time.Duration(10+3*c.present()) * probeInterval)
		switch {
		case len(blocked) == 0 && !warned.IsZero():
			c.log.Info("gossip datagrams get through to all members again")
			warned = time.Time{}
		case len(blocked) > 0 && time.Since(warned) >= warnBlockedEvery:
			c.log.Warn("gossip datagrams do not get through to members that answer by TCP: is UDP blocked on the gossip port? Until it is open, "+
				"loads and departures are exchanged by TCP, up to seconds late, and frozen nodes are found later", "members", len(blocked), "first", blocked[0])
			warned = time.Now()
		}
		if len(blocked) > 0 {
			c.ask(ctx, list, []string{blocked[rand.N(len(blocked))]})
		}
	}
}

// addresses are where the other live members gossip. memberlist's own list may be read only by its callbacks.
type addresses struct {
	mu     sync.Mutex // guards the fields below
	byName map[string]string
	heard  map[string]time.Time // by address: the last datagram from there; at first, when the member joined
}

func (a *addresses) put(name, address string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.byName == nil {
		a.byName, a.heard = map[string]string{}, map[string]time.Time{}
	}
	a.byName[name], a.heard[address] = address, time.Now()
}

// hear notes that a datagram came from an address.
func (a *addresses) hear(address string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, known := a.heard[address]; known {
		a.heard[address] = time.Now()
	}
}

func (a *addresses) remove(name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	address := a.byName[name]
	delete(a.byName, name)
	for _, other := range a.byName {
		if other == address { // It has been restarted.
			return
		}
	}
	delete(a.heard, address)
}

func (a *addresses) all() []string { return a.unheard(0) }

// unheard lists those from whom no datagram has come for so long.
func (a *addresses) unheard(least time.Duration) (list []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for address, at := range a.heard {
		if time.Since(at) >= least {
			list = append(list, address)
		}
	}
	return list
}

// pause reports whether ctx lasted.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
