package sfu

import (
	"context"
	"maps"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/holdfast-rtc/holdfast/control"
)

// maxDrain bounds the deadline of a drain.
const maxDrain = 24 * time.Hour

// Drain is a request to empty this node.
type Drain struct {
	Deadline time.Duration // rooms that are still here then move by a restart; 0: Config.DrainTimeout
	Exit     bool          // the process shall end when it is empty
}

// DrainState is how far a drain has come.
type DrainState struct {
	Draining bool // no room is opened
	Overdue  bool // the deadline has passed
	Exit     bool
	Began    time.Time
	Rooms    int // still here, those handed over and not yet closed included
	Open     int // of these, not handed over
	Peers    int
}

// draining is a drain under way; nil for none.
type draining struct {
	Drain

	began, until time.Time
}

// StartDrain takes no more rooms. Signaling nodes, which gossip must tell, move the open ones. During a drain it changes the
// deadline, and adds Exit, which only Undrain takes back.
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
	n.log.Info("node drains: it takes no more rooms", "rooms", len(n.serving), "deadline", d.Deadline.String(), "exit", next.Exit)
	open := slices.Collect(maps.Values(n.rooms))
	n.mu.Unlock()
	n.tellDrain()
	for _, r := range open {
		r.post(r.expire) // Nobody moves an empty room.
	}
}

// emptyGrace is how long a room without people stays.
func (n *Node) emptyGrace() time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.drain != nil {
		return 0
	}
	return n.cfg.Grace
}

// Undrain takes rooms again.
func (n *Node) Undrain() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.drain != nil {
		n.drain = nil
		n.log.Info("node takes rooms again")
	}
	n.tellDrain()
}

// DrainChanged receives when a drain begins, changes or is undone. There is one reader.
func (n *Node) DrainChanged() <-chan struct{} { return n.drainNews }

func (n *Node) tellDrain() {
	select {
	case n.drainNews <- struct{}{}:
	default:
	}
}

// DrainState sums up.
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

// serve counts the room until its last connection is closed: a room that was handed over still sends to people on their way.
func (n *Node) serve(ctx context.Context, r *room) {
	defer func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.serving, r)
	}()
	r.run(ctx)
}

// Drain empties this node, or takes that back.
func (s *service) Drain(_ context.Context, request *control.DrainRequest) (*control.DrainReply, error) {
	n := s.node
	if request.GetUndrain() {
		n.Undrain()
	} else {
		deadline := time.Duration(request.GetDeadlineMs()) * time.Millisecond
		if deadline > maxDrain {
			return nil, status.Errorf(codes.InvalidArgument, "a deadline of %v is too long: at most %v", deadline, maxDrain)
		}
		n.StartDrain(Drain{Deadline: deadline, Exit: request.GetExit()})
	}
	now := n.DrainState()
	return &control.DrainReply{
		Node: string(n.cfg.Node), Boot: string(n.cfg.Boot), Draining: now.Draining, Rooms: uint32(now.Rooms), Peers: uint32(now.Peers),
	}, nil
}
