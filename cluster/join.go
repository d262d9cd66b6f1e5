package cluster

import (
	"context"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/holdfast-rtc/holdfast/internal/backoff"
)

const (
	joinBackoffFirst = 100 * time.Millisecond
	joinBackoffMost  = 2 * time.Second

	// rejoinEvery heals partitions: memberlist forgets dead members, so seeds and last peers are joined again.
	rejoinEvery = 30 * time.Second

	countEvery = time.Second

	peakFor = 5 * time.Minute

	maxLastPeers = 8

	lookupTimeout = 5 * time.Second
)

// peakMembership is the largest number of members within peakFor.
type peakMembership struct {
	// members includes this one.
	members int
	// lastPeers are the addresses of some other members at that time.
	lastPeers []string
	since     time.Time
}

// partitioned reports whether half of the peak, or every other member, is lost.
func (p peakMembership) partitioned(now int) bool { return now < 2 || 2*now <= p.members }

func (p peakMembership) observe(now int, peers []string, at time.Time) peakMembership {
	if now < p.members && at.Sub(p.since) < peakFor {
		return p
	}
	rand.Shuffle(len(peers), func(i, j int) { peers[i], peers[j] = peers[j], peers[i] })
	return peakMembership{members: now, lastPeers: peers[:min(len(peers), maxLastPeers)], since: at}
}

type unjoined struct {
	since time.Time
	said  bool
}

const unjoinedFor = 10 * time.Second

func (u *unjoined) due(present int, now time.Time) bool {
	if present > 1 || u.since.IsZero() {
		*u = unjoined{since: now}
	}
	if u.said || now.Sub(u.since) < unjoinedFor {
		return false
	}
	u.said = true
	return true
}

// joinSeeds joins the seeds. While this node is partitioned it also asks the last peers, because it may be its own
// only seed.
func (c *Cluster) joinSeeds(ctx context.Context, list *memberlist.Memberlist) {
	if len(c.config.Join) == 0 {
		return
	}
	wait := backoff.Backoff{First: joinBackoffFirst, Most: joinBackoffMost}
	var (
		peak  peakMembership
		alone unjoined
	)
	observe := func() { peak = peak.observe(c.present(), c.addresses.all(), time.Now()) }
	for ctx.Err() == nil {
		joined := c.exchange(ctx, list, c.config.Join)
		if peak.partitioned(c.present()) {
			joined += c.exchange(ctx, list, peak.lastPeers)
		}
		partitioned := peak.partitioned(c.present())
		observe()
		if alone.due(c.present(), time.Now()) {
			c.log.Warn("no other node is reached: --join must name nodes that live, the gossip port must be open for TCP and UDP, "+
				"and all nodes need one cluster key and one --cluster", "join", c.config.Join)
		}
		if joined == 0 || partitioned {
			pause := wait.Next()
			// The pause is random, so that members do not join in step.
			backoff.Sleep(ctx, pause/2+rand.N(pause))
			continue
		}
		wait.Reset()
		for waited := time.Duration(0); waited < rejoinEvery && !peak.partitioned(c.present()) && backoff.Sleep(ctx, countEvery); {
			waited += countEvery
			observe()
		}
	}
}

// exchange asks all addresses at once, so that a dead one, or a name that no DNS server resolves, delays no other.
func (c *Cluster) exchange(ctx context.Context, list *memberlist.Memberlist, addresses []string) int {
	var joined atomic.Int64
	var all sync.WaitGroup
	for _, address := range addresses {
		all.Go(func() {
			c.catch("an exchange of states broke", func() {
				resolved, err := c.lookup.resolve(ctx, address)
				if err == nil {
					var n int
					n, err = list.Join(resolved)
					joined.Add(int64(n))
				}
				if err != nil {
					c.log.Debug("seed not reached", "seed", address, "err", err)
				}
			}, "with", address)
		})
	}
	all.Wait()
	return int(joined.Load())
}

// lookup returns the addresses of a host. network is "ip".
type lookup func(ctx context.Context, network, host string) ([]netip.Addr, error)

// resolve returns all addresses of a seed's host. memberlist would look the name up twice, for up to 10 s each time,
// even if the node ends meanwhile.
func (l lookup) resolve(ctx context.Context, seed string) ([]string, error) {
	host, port, err := net.SplitHostPort(seed)
	if err != nil {
		return nil, err
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return []string{seed}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	found, err := l(ctx, "ip", host)
	if err != nil {
		return nil, err
	}
	resolved := make([]string, len(found))
	for i, ip := range found {
		resolved[i] = net.JoinHostPort(ip.Unmap().String(), port)
	}
	return resolved, nil
}

func (c *Cluster) present() int {
	view := c.View()
	n := len(view.Signaling)
	for _, node := range view.Nodes {
		if !node.Suspect {
			n++
		}
	}
	return n
}

const (
	// exchangeEvery is the pause between exchanges. The number of members that know a piece of news doubles each
	// time: 100 members know it in 4 s.
	exchangeEvery = 500 * time.Millisecond

	warnBlockedEvery = 5 * time.Minute
)

// exchangeWithBlocked exchanges states by TCP with members that no UDP reaches. It also tells a member that was taken
// for dead, and is heard again, of its death, because only that member can refute it.
func (c *Cluster) exchangeWithBlocked(ctx context.Context, list *memberlist.Memberlist, probeInterval time.Duration) {
	var warned time.Time
	for backoff.Sleep(ctx, exchangeEvery) {
		if address := c.addresses.returning(); address != "" && c.exchange(ctx, list, []string{address}) > 0 {
			c.addresses.returned(address)
		}
		// A member pings each other one once in present-1 intervals. One that is unheard for three of its pings and 2
		// s has no UDP.
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
			c.exchange(ctx, list, []string{blocked[rand.N(len(blocked))]})
		}
	}
}

// addresses are the addresses of members. memberlist's own list may only be read in its callbacks, so this is a copy.
type addresses struct {
	mu     sync.Mutex
	byName map[string]string
	// heard has the time of the last datagram or join, by address.
	heard map[string]time.Time
	// lost has the members that are taken for dead, by address.
	lost map[string]*lost
}

// lost is a member that is taken for dead.
type lost struct {
	since time.Time
	// heard says that a datagram came from its address since.
	heard bool
}

const (
	maxLost = 256
	lostFor = 2 * rejoinEvery
)

func (a *addresses) put(name, address string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.byName == nil {
		a.byName, a.heard, a.lost = map[string]string{}, map[string]time.Time{}, map[string]*lost{}
	}
	a.byName[name], a.heard[address] = address, time.Now()
	delete(a.lost, address)
}

func (a *addresses) hear(address string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, known := a.heard[address]; known {
		a.heard[address] = time.Now()
	} else if l := a.lost[address]; l != nil {
		l.heard = true
	}
}

func (a *addresses) remove(name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	address := a.byName[name]
	delete(a.byName, name)
	for _, other := range a.byName {
		// A restarted node has the address of its former boot.
		if other == address {
			return
		}
	}
	delete(a.heard, address)
	for other, l := range a.lost {
		if time.Since(l.since) >= lostFor {
			delete(a.lost, other)
		}
	}
	if address != "" && len(a.lost) < maxLost {
		a.lost[address] = &lost{since: time.Now()}
	}
}

func (a *addresses) returning() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	for address, l := range a.lost {
		if l.heard && time.Since(l.since) < lostFor {
			return address
		}
	}
	return ""
}

func (a *addresses) returned(address string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.lost, address)
}

func (a *addresses) all() []string { return a.unheard(0) }

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
