package chaos

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/backoff"
	"github.com/holdfast-rtc/holdfast/lab/peer"
)

const (
	waiterName = "waiter"
	waiters    = 2
)

// queue adds people who wait for the capped room in all trials: nobody leaves it.
func (c *crowd) queue(ctx context.Context) error {
	for i := range waiters {
		p := &person{room: c.capped, name: fmt.Sprintf("%s-%d", waiterName, i+1), people: c.size(c.capped)}
		if err := c.start(p); err != nil { //nolint:contextcheck // as in crowd.open
			return err
		}
		err := poll(ctx, joinLimit, func() error {
			p.mu.Lock()
			defer p.mu.Unlock()
			if !waited(p.moments) {
				now := p.peer.Totals()
				return fmt.Errorf("%s does not wait for the full room: joined %t, codes %v, %d sockets lost", p.name, now.Joined, now.Codes, now.SocketsLost)
			}
			return nil
		})
		if err != nil {
			return err
		}
		c.line = append(c.line, p.name)
	}
	return nil
}

func waited(moments []peer.Moment) bool {
	return slices.ContainsFunc(moments, func(m peer.Moment) bool { return m.Step == peer.StepWaiting })
}

// letInAfter covers a roster's write, the next check of the waiting list and a join.
const letInAfter = 2500 * time.Millisecond

func (c *Chaos) lookAtCapped(ctx context.Context, w *World) {
	backoff.Sleep(ctx, letInAfter-time.Since(w.Until))
	w.Full = c.look(ctx)
	c.askRosters(ctx, &w.Full, w.Capped)
}

// NeverOverCap counts the people of the capped room by its roster and at media nodes.
func NeverOverCap(w *World) Verdict {
	v := verdict("never over the cap", "a room with a cap has no more people than that, by its roster and at each media node, and nobody who was in it has to wait")
	looks := 0
	count := func(by string, people []string) {
		looks++
		slices.Sort(people)
		if people = slices.Compact(people); len(people) > w.Cap {
			v.broken("%s has %d people in %s with a cap of %d: %v", by, len(people), w.Capped, w.Cap, people)
		}
	}
	for _, l := range slices.Concat([]Look{w.Before}, w.Between, []Look{w.After, w.Full}) {
		if r, asked := l.Rosters[w.Capped]; asked {
			var people []string
			for _, p := range r.People {
				people = append(people, p.Identity)
			}
			count("the roster", people)
		}
		for _, h := range l.holders(w.Capped) {
			var people []string
			for _, p := range h.Peers {
				people = append(people, p.Identity)
			}
			count(h.Node, people)
		}
	}
	for _, client := range w.Clients {
		if client.Room == w.Capped && waited(client.Moments) {
			v.broken("%s was in %s, and waits for it", client.Name, w.Capped)
		}
	}
	if looks == 0 {
		return v.unchecked("nobody looked at the room with a cap")
	}
	return *v
}
