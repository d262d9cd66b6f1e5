package chaos

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/child"
	"github.com/holdfast-rtc/holdfast/lab/devcluster"
	"github.com/holdfast-rtc/holdfast/lab/peer"
)

// A node that is gone is noticed after a lease of 15 s, and once more as long where the store does not trust its leases.
const ghostLimit = 45 * time.Second

const ghosts = 2

// haunt connects people in no room to one signaling node. Nobody says goodbye for them when that node dies.
func (c *Chaos) haunt(ctx context.Context, w *World, at devcluster.Node) (vanish func(), err error) {
	stack, err := peer.NewStack(peer.VideoNone)
	if err != nil {
		return nil, err
	}
	var all []*person
	vanish = func() {
		for _, p := range all {
			p.leave()
		}
	}
	for i := range ghosts {
		p := &person{name: fmt.Sprintf("%sghost-%d-%d", c.prefix(), c.trialNumber, i+1)}
		token, err := c.cluster.MessengerToken("", p.name, 0)
		if err == nil {
			p.peer, err = peer.New(peer.Options{URL: "http://" + at.Addresses[child.AddressHTTP] + "/", Token: token, Stack: stack}, slog.New(slog.DiscardHandler))
		}
		if err != nil {
			vanish()
			return nil, err
		}
		c.crowd.run(p) //nolint:contextcheck // as in crowd.open
		all = append(all, p)
		w.Ghosts = append(w.Ghosts, p.name)
	}
	err = poll(ctx, joinLimit, func() error {
		if online := c.online(ctx, w.Ghosts); len(online) < ghosts {
			return fmt.Errorf("only %v of %v are online", online, w.Ghosts)
		}
		return nil
	})
	if err != nil {
		vanish()
	}
	return vanish, err
}

// online returns who is shown as online; all when nobody knows.
func (c *Chaos) online(ctx context.Context, who []string) []string {
	var answer struct {
		Users []struct{ User, State string }
	}
	if err := c.cluster.AdminAt(ctx, c.page, "presence?"+url.Values{"user": who}.Encode(), &answer); err != nil {
		return nil
	}
	var online []string
	for _, u := range answer.Users {
		if u.State == "online" {
			online = append(online, u.User)
		}
	}
	return online
}

// awaitGhosts waits until the ghosts are offline, and keeps who is still online at the limit.
func (c *Chaos) awaitGhosts(ctx context.Context, w *World) {
	if len(w.Ghosts) == 0 {
		return
	}
	_ = poll(ctx, ghostLimit, func() error { // the verdict tells
		w.Haunting = c.online(ctx, w.Ghosts)
		if len(w.Haunting) > 0 {
			return errors.New("somebody gone is online")
		}
		return nil
	})
}

// NoGhosts looks for people whose signaling node died while the store's clock was wrong.
func NoGhosts(w *World) Verdict {
	v := verdict("nobody is online who is gone", fmt.Sprintf("who lost their signaling node and did not come back is offline within %s of the mending", ghostLimit))
	for _, who := range w.Haunting {
		v.broken("%s is gone, and online", who)
	}
	if len(w.Ghosts) == 0 {
		return v.unchecked("nobody vanished")
	}
	return *v
}
