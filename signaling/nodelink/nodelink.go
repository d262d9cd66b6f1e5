// Package nodelink carries the frames of direct messages between this signaling node and the others: one gRPC stream to
// each, opened when first needed, over connections that prove the cluster key.
//
// It promises that sending never blocks, that what piles up for one node delays no other, and that a malformed frame is
// refused and counted. Frames may be lost: package messaging tries again.
package nodelink

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/internal/loglimit"
	"github.com/holdfast-rtc/holdfast/internal/panics"
	"github.com/holdfast-rtc/holdfast/people/messaging"
)

const (
	tickEvery = 25 * time.Millisecond
	// Malformed frames and streams that another run was meant to get.
	faultLogsPerSecond = 0.2
	faultLogBurst      = 3
)

// Views gives the current view.
type Views interface {
	View() *cluster.View
}

// Links is this node's part.
type Links struct {
	*messaging.Node

	self   messaging.Peer
	pool   *control.Pool
	views  Views
	users  Users
	panics *panics.Guard
	log    *slog.Logger
	faults *loglimit.Limiter

	malformed atomic.Uint64
	dropped   atomic.Uint64
	fresh     chan struct{} // capacity 1: an outbox waits to be started
	questions chan struct{} // capacity 1

	mu       sync.Mutex // guards the fields below
	outboxes map[messaging.Peer]*outbox
	address  map[messaging.Peer]string
	asked    map[messaging.UserID]struct{}
}

// New makes the links of self. Run must follow.
func New(self messaging.Peer, pool *control.Pool, views Views, users Users, guard *panics.Guard, log *slog.Logger) *Links {
	l := &Links{
		self: self, pool: pool, views: views, users: users, panics: guard, log: log,
		faults: loglimit.New(faultLogsPerSecond, faultLogBurst), fresh: make(chan struct{}, 1), questions: make(chan struct{}, 1),
		outboxes: make(map[messaging.Peer]*outbox), address: make(map[messaging.Peer]string), asked: make(map[messaging.UserID]struct{}),
	}
	l.Node = messaging.New(self, messaging.DefaultConfig(), l, l)
	return l
}

// Counters has the links' own, too.
func (l *Links) Counters() messaging.Counters {
	c := l.Node.Counters()
	c.Malformed, c.Dropped = l.malformed.Load(), l.dropped.Load()
	return c
}

// Run follows the view, ticks and sends until ctx ends.
func (l *Links) Run(ctx context.Context) error {
	var work sync.WaitGroup
	defer work.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	work.Go(func() { l.answer(ctx) })
	tick := time.NewTicker(tickEvery)
	defer tick.Stop()
	version := uint64(0)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			l.panics.Catch(l.log, "a tick of direct messages broke", func() {
				if view := l.views.View(); view != nil && view.Version != version {
					version = view.Version
					l.follow(view)
				}
				l.Node.Tick()
			})
		case <-l.fresh:
			for _, o := range l.unstarted() {
				work.Go(func() { o.run(ctx) })
			}
		}
	}
}

// follow tells the node who lives, and ends the streams to others.
func (l *Links) follow(view *cluster.View) {
	peers := []messaging.Peer{l.self}
	addresses := make(map[messaging.Peer]string)
	for _, node := range view.Signaling {
		peer := messaging.Peer{ID: node.ID, Boot: node.Boot}
		// One of an earlier release has no control address.
		if peer.ID == l.self.ID || node.Control == "" {
			continue
		}
		peers = append(peers, peer)
		addresses[peer] = node.Control
	}
	l.mu.Lock()
	before := l.address
	l.address = addresses
	for peer, o := range l.outboxes {
		if addresses[peer] == "" {
			delete(l.outboxes, peer)
			o.close()
		}
	}
	l.mu.Unlock()
	for peer, address := range before {
		if addresses[peer] == "" {
			l.pool.Forget(address)
		}
	}
	slices.SortFunc(peers, func(a, b messaging.Peer) int { return strings.Compare(string(a.ID), string(b.ID)) })
	l.Node.SetPeers(peers)
}

// Send is part of messaging.Transport.
func (l *Links) Send(to messaging.Peer, f messaging.Frame) {
	l.mu.Lock()
	o := l.outboxes[to]
	if o == nil && l.address[to] != "" {
		o = newOutbox(l, to, l.address[to])
		l.outboxes[to] = o
		wake(l.fresh)
	}
	l.mu.Unlock()
	if o == nil || !o.put(f) {
		l.dropped.Add(1)
	}
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (l *Links) unstarted() []*outbox {
	l.mu.Lock()
	defer l.mu.Unlock()
	var list []*outbox
	for _, o := range l.outboxes {
		if !o.started {
			o.started = true
			list = append(list, o)
		}
	}
	return list
}
