package cluster

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
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
	n := 0
	for _, node := range c.View().Nodes {
		if !node.Doubted {
			n++
		}
	}
	return n
}

// addresses are where the other live members gossip. memberlist's own list may be read only by its callbacks.
type addresses struct {
	mu     sync.Mutex // guards the field below
	byName map[string]string
}

func (a *addresses) put(name, address string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.byName == nil {
		a.byName = make(map[string]string)
	}
	a.byName[name] = address
}

func (a *addresses) remove(name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.byName, name)
}

func (a *addresses) all() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Collect(maps.Values(a.byName))
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
