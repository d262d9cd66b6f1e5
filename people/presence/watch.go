package presence

import (
	"context"
	"errors"
	"maps"
	"time"
)

const (
	// So many watches take about 200 MB.
	maxWatches = 1_000_000
	// This is the bound of one owner: 40 tabs of 500 users.
	maxShare = 20_000
	// This is the bound of one call of the store.
	maxAsk = 20_000
	// Every so many polls the next shard is read from the beginning, because a new master of the store may lack
	// changes.
	refollowEvery = 8
)

// Watch refuses with one of these errors.
var (
	ErrTooManyWatches = errors.New("this signaling node watches as many people as it may")
	ErrShareOfWatches = errors.New("this identity watches as many people as it may")
)

// Watcher is told the presence of all its users, and then their changes.
type Watcher struct {
	owner string
	tell  func([]Status)
	users map[string]struct{}
	due   map[string]struct{}
}

// NewWatcher returns a Watcher that watches nobody. The watchers of one owner share a limit. tell is called by one
// goroutine and must not block.
func NewWatcher(owner string, tell func([]Status)) *Watcher {
	return &Watcher{owner: owner, tell: tell}
}

type watched struct {
	// status has no State until the store was asked.
	status   Status
	watchers map[*Watcher]struct{}
}

type reader struct {
	cursors [Shards]Cursor
	heard   [Shards]time.Time
	// silent marks the shards that have not answered for a TTL, so that the presence of their users is unknown.
	silent [Shards]bool
	polls  int
}

// Watch replaces the users of w, and tells w the presence of all of them. Without users, watching ends.
func (t *Tracker) Watch(w *Watcher, users []string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	before, now := w.users, make(map[string]struct{}, len(users))
	for _, user := range users {
		now[user] = struct{}{}
	}
	more := len(now) - len(before)
	switch {
	case len(now) == 0:
	case t.watches+more > maxWatches:
		return ErrTooManyWatches
	case t.shares[w.owner]+more > maxShare:
		return ErrShareOfWatches
	}
	// Every user is due, so that w is told of all of them.
	w.users, w.due = now, maps.Clone(now)
	for user := range now {
		t.watchFor(w, user)
	}
	for user := range before {
		if _, still := now[user]; !still {
			t.unwatchFor(w, user)
		}
	}
	t.watches += more
	if t.shares[w.owner] += more; t.shares[w.owner] == 0 {
		delete(t.shares, w.owner)
	}
	delete(t.due, w)
	if len(now) > 0 {
		t.due[w] = struct{}{}
		wake(t.asked)
	}
	return nil
}

// find returns what is known of a watched user, or nil. The caller holds mu.
func (t *Tracker) find(user string) *watched { return t.watched[ShardOf(user)][user] }

func (t *Tracker) watchFor(w *Watcher, user string) {
	one := t.find(user)
	if one == nil {
		one = &watched{status: Status{User: user}, watchers: make(map[*Watcher]struct{})}
		t.watched[ShardOf(user)][user] = one
		t.unknown[user] = struct{}{}
	}
	one.watchers[w] = struct{}{}
}

func (t *Tracker) unwatchFor(w *Watcher, user string) {
	one := t.find(user)
	delete(one.watchers, w)
	if len(one.watchers) == 0 {
		delete(t.watched[ShardOf(user)], user)
		delete(t.unknown, user)
	}
}

// read is the only goroutine that asks the store about users and calls the watchers.
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
		t.panics.Catch(t.log, "watching users broke", func() {
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

// follow reads the logs of all shards from their cursors on. The users of a shard that has been silent for a TTL
// become unknown.
func (t *Tracker) follow(ctx context.Context) {
	t.mu.Lock()
	idle := t.watches == 0
	t.mu.Unlock()
	r := &t.reader
	if idle {
		// Without watches nothing is read. Old cursors would be useless by the next watch.
		*r = reader{}
		return
	}
	if r.polls++; r.polls%refollowEvery == 0 {
		r.cursors[r.polls/refollowEvery%Shards] = Cursor{}
	}
	diffs, err := t.users.Follow(ctx, r.cursors)
	if err != nil {
		t.log.Debug("presence: a log is not read", "error", err)
	}
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	for shard := range Shard(Shards) {
		diff, answered := diffs[shard]
		switch {
		case answered:
			r.cursors[shard], r.heard[shard], r.silent[shard] = diff.Next, now, false
			t.take(shard, diff)
		case r.heard[shard].IsZero():
			r.heard[shard] = now
		case now.Sub(r.heard[shard]) > t.timing.TTL && !r.silent[shard]:
			r.silent[shard] = true
			t.markUnknown(shard)
		}
	}
}

// take notes the changes of a shard. The caller holds mu.
func (t *Tracker) take(shard Shard, diff Diff) {
	latest := make(map[string]Change)
	for _, change := range diff.Changes {
		latest[change.User] = change
	}
	for user, change := range latest {
		if one := t.watched[shard][user]; one != nil && one.status.State != "" {
			t.set(one, change.status())
		}
	}
	if diff.Gap {
		for user := range t.watched[shard] {
			t.unknown[user] = struct{}{}
		}
	}
}

// markUnknown notes that nothing is known of the shard's users. The caller holds mu.
func (t *Tracker) markUnknown(shard Shard) {
	for user, one := range t.watched[shard] {
		t.unknown[user] = struct{}{}
		if one.status.State != "" {
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

// set notes a user's status and tells the watchers of a change. The caller holds mu.
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

// ask asks the store about the users of whom nothing certain is known.
func (t *Tracker) ask(ctx context.Context) {
	t.mu.Lock()
	before := len(t.unknown)
	users := make([]string, 0, min(before, maxAsk))
	for user := range t.unknown {
		// There are more users than one call takes. If this call got anywhere, the next one follows at once.
		if len(users) == maxAsk {
			break
		}
		users = append(users, user)
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
		if one := t.find(status.User); one != nil && status.State != Unknown {
			delete(t.unknown, status.User)
			t.set(one, status)
		}
	}
	for _, user := range users {
		if one := t.find(user); one != nil && one.status.State == "" {
			t.set(one, Status{User: user, State: Unknown})
		}
	}
	if len(users) == maxAsk && len(t.unknown) < before {
		wake(t.asked)
	}
}

func (t *Tracker) deliver() {
	t.mu.Lock()
	messages := make(map[*Watcher][]Status, len(t.due))
	for w := range t.due {
		list := make([]Status, 0, len(w.due))
		for user := range w.due {
			list = append(list, t.find(user).status)
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

func complete(list []Status) bool {
	for _, status := range list {
		if status.State == "" {
			return false
		}
	}
	return true
}
