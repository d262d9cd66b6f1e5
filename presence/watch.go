package presence

import (
	"context"
	"errors"
	"time"
)

// maxWatches of one node together cost it about 200 MB.
const maxWatches = 1_000_000

// refollowEvery so many polls each watched user is asked for anew: a replica that became master may lack changes.
const refollowEvery = 120

// ErrTooManyWatches refuses a watcher.
var ErrTooManyWatches = errors.New("this signaling node watches as many people as it may")

// Watcher is told of some users: of all of them at once, then of those who come and go.
type Watcher struct {
	tell  func([]Status)
	users map[string]struct{}
	due   map[string]struct{} // to be told
}

// NewWatcher watches nobody. tell must not block; it is called from one goroutine.
func NewWatcher(tell func([]Status)) *Watcher { return &Watcher{tell: tell} }

// watched is a user whom somebody watches.
type watched struct {
	status   Status // without a State until it was asked for
	known    bool   // else the store is asked
	watchers map[*Watcher]struct{}
}

// reader is where the logs were read to.
type reader struct {
	cursors [Shards]Cursor
	heard   [Shards]time.Time // when the shard answered last
	polls   int
}

// Watch replaces whom w watches, and has it told of all of them. Nobody ends it.
func (t *Tracker) Watch(w *Watcher, users []string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.watches-len(w.users)+len(users) > maxWatches && len(users) > 0 {
		return ErrTooManyWatches
	}
	before := w.users
	w.users, w.due = make(map[string]struct{}, len(users)), make(map[string]struct{}, len(users))
	for _, user := range users {
		w.users[user], w.due[user] = struct{}{}, struct{}{}
		one := t.watched[user]
		if one == nil {
			one = &watched{status: Status{User: user}, watchers: make(map[*Watcher]struct{})}
			t.watched[user] = one
		}
		one.watchers[w] = struct{}{}
	}
	for user := range before {
		if _, still := w.users[user]; still {
			continue
		}
		one := t.watched[user]
		delete(one.watchers, w)
		if len(one.watchers) == 0 {
			delete(t.watched, user)
		}
	}
	t.watches += len(w.users) - len(before)
	delete(t.due, w)
	if len(users) > 0 {
		t.due[w] = struct{}{}
		wake(t.asked)
	}
	return nil
}

func (t *Tracker) read(ctx context.Context) {
	poll := time.NewTicker(t.timing.Poll)
	defer poll.Stop()
	for {
		follow := false
		select {
		case <-ctx.Done():
			return
		case <-t.asked:
		case <-poll.C:
			follow = true
		}
		t.panics.Survives(t.log, "watching users broke", func() {
			limited, cancel := context.WithTimeout(ctx, t.timing.limit())
			defer cancel()
			if follow {
				t.follow(limited)
			}
			t.ask(limited)
			t.deliver()
		})
	}
}

// follow reads the logs, where somebody watches.
func (t *Tracker) follow(ctx context.Context) {
	t.mu.Lock()
	idle := len(t.watched) == 0
	t.mu.Unlock()
	r := &t.reader
	if r.polls++; idle || r.polls%refollowEvery == 0 {
		r.cursors = [Shards]Cursor{}
	}
	if idle {
		r.heard = [Shards]time.Time{}
		return
	}
	diffs, err := t.users.Follow(ctx, r.cursors)
	if err != nil {
		t.log.Debug("presence: a log is not read", "error", err)
	}
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	latest := make(map[string]Change)
	for shard, diff := range diffs {
		r.cursors[shard], r.heard[shard] = diff.Next, now
		for _, change := range diff.Changes {
			latest[change.User] = change
		}
	}
	for user, change := range latest {
		if one := t.watched[user]; one != nil && one.status.State != "" {
			t.set(one, change.status())
		}
	}
	for user, one := range t.watched {
		shard := ShardOf(user)
		diff, answered := diffs[shard]
		if r.heard[shard].IsZero() {
			r.heard[shard] = now
		}
		switch {
		case answered && diff.Gap:
			one.known = false
		case !answered && now.Sub(r.heard[shard]) > t.timing.TTL && one.status.State != "":
			one.known = false
			t.set(one, Status{User: user, State: Unknown})
		}
	}
}

func (c Change) status() Status {
	if c.Online {
		return Status{User: c.User, State: Online, Since: c.At}
	}
	return Status{User: c.User, State: Offline, LastSeen: c.At}
}

// set has the watchers told of another state. It needs t.mu.
func (t *Tracker) set(one *watched, status Status) {
	changed := one.status.State != status.State
	one.status = status
	if !changed {
		return
	}
	for w := range one.watchers {
		w.due[status.User] = struct{}{}
		t.due[w] = struct{}{}
	}
}

// ask asks for those of whom nothing is known. What was known before stands until the store knows better.
func (t *Tracker) ask(ctx context.Context) {
	t.mu.Lock()
	var users []string
	for user, one := range t.watched {
		if !one.known {
			users = append(users, user)
		}
	}
	t.mu.Unlock()
	if len(users) == 0 {
		return
	}
	found, err := t.users.Ask(ctx, users)
	if err != nil {
		t.log.Debug("presence: users are not asked for", "error", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, status := range found {
		if one := t.watched[status.User]; one != nil && status.State != Unknown {
			one.known = true
			t.set(one, status)
		}
	}
	for _, user := range users {
		if one := t.watched[user]; one != nil && one.status.State == "" {
			t.set(one, Status{User: user, State: Unknown})
		}
	}
}

// deliver tells each watcher all that changed, in one message.
func (t *Tracker) deliver() {
	t.mu.Lock()
	messages := make(map[*Watcher][]Status, len(t.due))
	for w := range t.due {
		list := make([]Status, 0, len(w.due))
		for user := range w.due {
			list = append(list, t.watched[user].status)
		}
		if complete(list) {
			messages[w] = list
			clear(w.due)
			delete(t.due, w)
		}
	}
	t.mu.Unlock()
	for w, list := range messages {
		w.tell(list)
	}
}

// complete is false while somebody was not asked for yet.
func complete(list []Status) bool {
	for _, status := range list {
		if status.State == "" {
			return false
		}
	}
	return true
}
