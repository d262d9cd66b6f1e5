package chaos

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/backoff"
	"github.com/holdfast-rtc/holdfast/lab/peer"
)

// Newcomer is somebody who joins during a fault, or just after it, and leaves soon after.
type Newcomer struct {
	Room, Name string
	After      time.Duration // of the fault
	Took       time.Duration // until they were in; 0: never
	Waited     bool          // they were told to wait
	Refused    string        // what the server said; empty: nothing
	Door       bool          // the room has a cap, and had a free place
	Beyond     bool          // the room was full
}

const (
	newcomerName  = "newcomer"
	newcomerEvery = 500 * time.Millisecond
	// joinWithin allows for a store that is found again through another Sentinel.
	joinWithin = 5 * time.Second
	// Of the cap of the room with a door one place is taken before the fault, and one after it.
	doorCap = 4
)

// newcomers join the rooms that are there, one after the other, and now and then one more room with a cap.
type newcomers struct {
	chaos *Chaos
	stack *peer.Stack
	door  string
	all   []*newcomer
	end   context.CancelFunc
	ended chan struct{}
}

type newcomer struct {
	person

	began  time.Time
	door   bool
	beyond bool
}

// invite opens the room with a door and begins to send newcomers.
func (c *Chaos) invite(ctx context.Context, w *World) (*newcomers, error) {
	stack, err := peer.NewStack(peer.VideoNone)
	if err != nil {
		return nil, err
	}
	n := &newcomers{chaos: c, stack: stack, door: fmt.Sprintf("door-%x-%d", c.options.Seed, c.trialNumber), ended: make(chan struct{})}
	first, err := n.send(n.door, false) //nolint:contextcheck // as in crowd.open
	if err != nil {
		return nil, err
	}
	if err := poll(ctx, joinLimit, first.inside); err != nil {
		n.dismiss()
		return nil, err
	}
	ctx, n.end = context.WithCancel(ctx)
	rooms := slices.DeleteFunc(w.rooms(), func(room string) bool { return room == c.crowd.capped || room == c.crowd.browserRoom() })
	go n.run(ctx, rooms)
	return n, nil
}

func (n *newcomers) run(ctx context.Context, rooms []string) {
	defer close(n.ended)
	for i := 0; backoff.Sleep(ctx, newcomerEvery); i++ {
		room, toDoor := rooms[i%len(rooms)], i%4 == 1 && n.inDoor() < doorCap-1
		if toDoor {
			room = n.door
		}
		if len(n.all) >= maxNewcomers {
			continue
		}
		if _, err := n.send(room, false); err != nil { //nolint:contextcheck // as in crowd.open
			return // the verdict tells that nobody came
		}
	}
}

const maxNewcomers = 40

func (n *newcomers) inDoor() int {
	count := 0
	for _, one := range n.all {
		if one.door {
			count++
		}
	}
	return count
}

// send has one more person join, without media. beyond: the room is full.
func (n *newcomers) send(room string, beyond bool) (*newcomer, error) {
	one := &newcomer{person: person{room: room, name: fmt.Sprintf("%s-%d", newcomerName, len(n.all)+1)}, began: time.Now(), door: room == n.door, beyond: beyond}
	limit := 0
	if one.door {
		limit = doorCap
	}
	token, err := n.chaos.cluster.MessengerToken(room, one.name, limit)
	if err != nil {
		return nil, err
	}
	one.peer, err = peer.New(peer.Options{
		URL: n.chaos.page, Token: token, Room: room, Stack: n.stack, Observe: one.observe, Wait: one.door,
	}, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	n.chaos.crowd.run(&one.person)
	n.all = append(n.all, one)
	return one, nil
}

func (n *newcomer) inside() error {
	if !n.peer.Totals().Joined {
		return errors.New(n.name + " is not in " + n.room)
	}
	return nil
}

// finish fills the room with a door, sends one person too many, and waits until everybody is where they should be.
func (n *newcomers) finish(ctx context.Context, w *World) error {
	n.end()
	<-n.ended
	defer n.dismiss()
	for n.inDoor() < doorCap {
		if _, err := n.send(n.door, false); err != nil { //nolint:contextcheck // as in crowd.open
			return err
		}
	}
	wait := func() {
		_ = poll(ctx, joinWithin, func() error { // the verdicts tell who is missing
			for _, one := range n.all {
				if err := one.inside(); err != nil && !one.beyond {
					return err
				}
			}
			return nil
		})
	}
	wait()
	last, err := n.send(n.door, true) //nolint:contextcheck // as in crowd.open
	if err != nil {
		return err
	}
	_ = poll(ctx, joinWithin, func() error { // as above
		if !last.told().Waited {
			return last.inside()
		}
		return nil
	})
	for _, one := range n.all {
		told := one.told()
		told.After = one.began.Sub(w.first())
		w.Newcomers = append(w.Newcomers, told)
	}
	return nil
}

func (w *World) joinsNote() string {
	in, longest := 0, time.Duration(0)
	for _, n := range w.Newcomers {
		if n.Took > 0 {
			in++
		}
		longest = max(longest, n.Took)
	}
	return fmt.Sprintf("%d of %d newcomers came in, the slowest in %.1f s", in, len(w.Newcomers), longest.Seconds())
}

func (n *newcomer) told() Newcomer {
	t := Newcomer{Room: n.room, Name: n.name, Door: n.door && !n.beyond, Beyond: n.beyond}
	if totals := n.peer.Totals(); totals.Joined {
		t.Took = max(totals.JoinedAt.Sub(n.began), 1)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	t.Waited = waited(n.moments)
	if n.refused != nil {
		t.Refused = n.refused.Error()
	}
	return t
}

func (n *newcomers) dismiss() {
	for _, one := range n.all {
		one.leave()
	}
}

func isNewcomer(identity string) bool { return strings.HasPrefix(identity, newcomerName) }

// JoinsGoOn judges those who came to rooms without a cap.
func JoinsGoOn(w *World) Verdict {
	v := verdict("people can join", fmt.Sprintf("who comes during the fault is in a room within %s", joinWithin))
	return judgeNewcomers(w, v, func(n Newcomer) bool { return !n.Door && !n.Beyond })
}

// DoorLetsIn judges those who came to the room with a cap.
func DoorLetsIn(w *World) Verdict {
	v := verdict("a cap lets in up to the cap", fmt.Sprintf("a room with a cap takes people up to the cap during the fault and after it, each within %s, and nobody beyond it", joinWithin))
	for _, n := range w.Newcomers {
		if n.Beyond && n.Took > 0 {
			v.broken("%s is in %s, which was full", n.Name, n.Room)
		}
	}
	return judgeNewcomers(w, v, func(n Newcomer) bool { return n.Door })
}

func judgeNewcomers(w *World, v *Verdict, whom func(Newcomer) bool) Verdict {
	came := 0
	for _, n := range w.Newcomers {
		if !whom(n) {
			continue
		}
		came++
		switch at := n.After.Round(100 * time.Millisecond); {
		case n.Refused != "":
			v.broken("%s came to %s %s after the fault, and was refused: %s", n.Name, n.Room, at, n.Refused)
		case n.Waited:
			v.broken("%s came to %s %s after the fault, and had to wait, though there was a place", n.Name, n.Room, at)
		case n.Took == 0 || n.Took > joinWithin:
			v.broken("%s came to %s %s after the fault, and was not in within %s", n.Name, n.Room, at, joinWithin)
		}
	}
	if came == 0 {
		return v.unchecked("nobody came")
	}
	return *v
}
