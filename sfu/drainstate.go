package sfu

import (
	"context"
	"slices"
	"time"
)

const maxDrain = 24 * time.Hour

// Drain asks a node to become empty.
type Drain struct {
	// Deadline is when rooms that have not moved live move by restarts; 0: Config.DrainTimeout.
	Deadline time.Duration
	// Exit ends the process once the node is empty.
	Exit bool
}

// DrainState is a drain's progress.
type DrainState struct {
	// Draining says that no room is opened; Overdue, that the deadline has passed.
	Draining bool
	Overdue  bool
	Exit     bool
	Began    time.Time
	// Open counts the rooms that are not handed over. Rooms counts also those that are, but have not closed yet.
	Rooms int
	Open  int
	Peers int
}

type draining struct {
	Drain

	began, until time.Time
}

// StartDrain takes no more rooms; signaling nodes move the open ones. A second call changes the deadline and may add
// Exit, which only Undrain removes.
func (n *Node) StartDrain(d Drain) {
	n.mu.Lock()
	now := time.Now()
	if d.Deadline <= 0 {
		d.Deadline = n.cfg.DrainTimeout
	}
	next := &draining{Drain: d, began: now, until: now.Add(min(d.Deadline, maxDrain))}
	if n.drain != nil {
		next.began, next.Exit = n.drain.began, next.Exit || n.drain.Exit
	}
	n.drain = next
	n.cfg.Metrics.Drained()
	n.log.Info("node drains: it takes no more rooms", "rooms", len(n.serving), "deadline", d.Deadline.String(), "exit", next.Exit)
	open := slices.Collect(n.sending())
	n.mu.Unlock()
	n.tellDrain()
	// Nobody moves an empty room: it closes at once.
	for _, r := range open {
		r.post(r.expire)
		r.post(r.branch.tellDraining)
	}
}

// emptyGrace is how long an empty room stays open.
func (n *Node) emptyGrace() time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.drain != nil {
		return 0
	}
	return n.cfg.Grace
}

// Undrain takes rooms again, and reports whether the node was draining.
func (n *Node) Undrain() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	drained := n.drain != nil
	if drained {
		n.drain = nil
		n.log.Info("node takes rooms again")
	}
	n.tellDrain()
	return drained
}

// DrainChanged signals each change, for one reader.
func (n *Node) DrainChanged() <-chan struct{} { return n.drainNews }

func (n *Node) tellDrain() {
	select {
	case n.drainNews <- struct{}{}:
	default:
	}
}

// DrainState says how far the drain is.
func (n *Node) DrainState() DrainState {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := DrainState{Rooms: len(n.serving), Open: len(n.rooms)}
	for r := range n.serving {
		s.Peers += int(r.peerCount.Load())
	}
	if d := n.drain; d != nil {
		s.Draining, s.Overdue, s.Exit, s.Began = true, !time.Now().Before(d.until), d.Exit, d.began
	}
	return s
}

// serve counts a room until its last connection closes: after a hand-over it still sends to people on their way.
func (n *Node) serve(ctx context.Context, r *room) {
	defer func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.serving, r)
		n.retired = n.retired.Plus(r.media.Stats())
	}()
	r.run(ctx)
}
