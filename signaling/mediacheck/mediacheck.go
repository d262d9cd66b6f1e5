// Package mediacheck checks, from this signaling node, the media sockets that clients are told of, as a browser would: by ICE
// connectivity checks. A silent socket is logged here and at the media node, which alone can answer.
//
// A socket that answers here may be closed to clients elsewhere, and one behind a NAT without hairpinning may be silent only here.
package mediacheck

import (
	"context"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/internal/backoff"
	"github.com/holdfast-rtc/holdfast/internal/panics"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

const (
	lookEvery  = time.Second
	askTimeout = 5 * time.Second
	// Pauses by the last result.
	againUnasked = 5 * time.Second
	againSilent  = 30 * time.Second
	againGood    = 10 * time.Minute
	atOnce       = 8
	maxAddresses = 8 // of a node
)

// Views gives the current view.
type Views interface {
	View() *cluster.View
}

// Checker is this node's part.
type Checker struct {
	self   ring.NodeID
	pool   *control.Pool
	views  Views
	panics *panics.Guard
	log    *slog.Logger
	slots  chan struct{}

	mu    sync.Mutex // guards found
	found map[pin.BootID]finding
}

// finding is about one boot.
type finding struct {
	busy, known  bool
	cannot       bool // an earlier release
	next         time.Time
	told, silent []string
}

// New starts nothing.
func New(self ring.NodeID, pool *control.Pool, views Views, guard *panics.Guard, log *slog.Logger) *Checker {
	return &Checker{self: self, pool: pool, views: views, panics: guard, log: log, slots: make(chan struct{}, atOnce), found: map[pin.BootID]finding{}}
}

// Told returns the media sockets that a boot tells clients of, and those silent here; both empty until it was checked.
func (c *Checker) Told(boot pin.BootID) (told, silent []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.found[boot].told, c.found[boot].silent
}

// Run checks new media nodes, and the others now and then, until ctx ends.
func (c *Checker) Run(ctx context.Context) error {
	var work sync.WaitGroup
	defer work.Wait()
	backoff.Every(ctx, lookEvery, func() {
		for _, node := range c.due(time.Now()) {
			work.Go(func() {
				select {
				case c.slots <- struct{}{}:
					defer func() { <-c.slots }()
				case <-ctx.Done():
					return
				}
				defer c.idle(node.Boot)
				c.panics.Catch(c.log, "trying a node's media sockets broke", func() { c.try(ctx, node) })
			})
		}
	})
	return nil
}

// due marks what it returns as busy, and forgets dead boots.
func (c *Checker) due(now time.Time) (nodes []cluster.Node) {
	view := c.views.View()
	if view == nil || !view.Settled {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	live := make(map[pin.BootID]bool, len(view.Nodes))
	for _, node := range view.Nodes {
		live[node.Boot] = true
		if f := c.found[node.Boot]; !f.busy && !f.cannot && !node.Suspect && !now.Before(f.next) {
			// If the check breaks, it is repeated as unasked.
			f.busy, f.next = true, now.Add(againUnasked)
			c.found[node.Boot] = f
			nodes = append(nodes, node)
		}
	}
	for boot, f := range c.found {
		if !live[boot] && !f.busy {
			delete(c.found, boot)
		}
	}
	return nodes
}

func (c *Checker) try(ctx context.Context, node cluster.Node) {
	now, err := c.ask(ctx, node)
	c.mu.Lock()
	before := c.found[node.Boot]
	if err != nil {
		now = before
		now.cannot = status.Code(err) == codes.Unimplemented
	}
	c.found[node.Boot] = now
	c.mu.Unlock()
	if err != nil {
		c.log.Debug("media sockets not tried", "node", node.ID, "error", err)
		return
	}
	c.say(node, before, now)
}

func (c *Checker) idle(boot pin.BootID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.found[boot]
	f.busy = false
	c.found[boot] = f
}

// say logs changes.
func (c *Checker) say(node cluster.Node, before, now finding) {
	log := c.log.With("node", node.ID, "told", strings.Join(now.told, ", "))
	switch {
	case len(now.silent) > 0 && !slices.Equal(now.silent, before.silent):
		log.Warn("clients are told media addresses of a node that do not answer here: are its --media-advertise, the NAT and the firewall right?", "silent", strings.Join(now.silent, ", "))
	case len(now.silent) == 0 && len(before.silent) > 0:
		log.Info("all media addresses of a node answer here again")
	case len(now.silent) == 0 && !before.known:
		log.Debug("all media addresses of a node answer here")
	}
}

// ask tries each address and tells the node.
func (c *Checker) ask(ctx context.Context, node cluster.Node) (finding, error) {
	client, err := c.pool.Client(node.Control)
	if err != nil {
		return finding{}, err
	}
	reach := func(request *control.ReachRequest) (*control.ReachReply, error) {
		limited, cancel := context.WithTimeout(ctx, askTimeout)
		defer cancel()
		request.Signaling = string(c.self)
		return client.Reach(limited, request)
	}
	reply, err := reach(&control.ReachRequest{})
	if err != nil {
		return finding{}, err
	}
	if pin.BootID(reply.GetBoot()) != node.Boot {
		return finding{}, status.Error(codes.Unavailable, "another process answers there")
	}
	now := finding{known: true, told: reply.GetMedia()[:min(len(reply.GetMedia()), maxAddresses)]}
	answers := make([]answer, len(now.told))
	var each sync.WaitGroup
	for i, text := range now.told {
		answers[i] = silent
		if at, err := netip.ParseAddrPort(text); err == nil {
			each.Go(func() { answers[i] = check(ctx, at, reply.GetUfrag(), reply.GetPassword()) })
		}
	}
	each.Wait()
	if ctx.Err() != nil {
		return finding{}, ctx.Err()
	}
	for i, text := range now.told {
		if answers[i] == silent {
			now.silent = append(now.silent, text)
		}
	}
	now.next = time.Now().Add(backoff.Jitter(againGood))
	if len(now.silent) > 0 {
		now.next = time.Now().Add(againSilent)
	}
	_, err = reach(&control.ReachRequest{Tried: true, Silent: now.silent})
	return now, err
}
