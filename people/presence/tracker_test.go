package presence

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast-rtc/holdfast/internal/panics"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errAway = errors.New("the store is away")

// memory is a store for one node: nothing lapses in it.
type memory struct {
	mu     sync.Mutex // guards the fields below
	away   bool
	young  bool
	breaks bool
	// partial: what is asked of it is done, and yet there is an error: of others.
	partial bool
	born    int64
	leases  map[name]Lease
	tabs    map[string]map[name]bool
	logs    map[Shard][]Change
	calls   map[string]int
}

func newMemory() *memory {
	return &memory{born: 1, leases: map[name]Lease{}, tabs: map[string]map[name]bool{}, logs: map[Shard][]Change{}, calls: map[string]int{}}
}

func (m *memory) called(what string) error {
	m.calls[what]++
	if m.breaks {
		m.breaks = false
		panic("of a test")
	}
	if m.away {
		return errAway
	}
	return nil
}

func (m *memory) put(l Lease) {
	m.leases[nameOf(l)] = l
	if m.tabs[l.User] == nil {
		m.tabs[l.User] = make(map[name]bool)
	}
	m.tabs[l.User][nameOf(l)] = true
}

func (m *memory) forget() {
	clear(m.leases)
	clear(m.tabs)
}

func (m *memory) online(user string) bool {
	return len(m.tabs[user]) > 0
}

func (m *memory) Add(_ context.Context, leases []Lease) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.called("add"); err != nil {
		return err
	}
	for _, l := range leases {
		if !m.online(l.User) {
			m.logs[ShardOf(l.User)] = append(m.logs[ShardOf(l.User)], Change{User: l.User, Online: true, At: time.Now()})
		}
		m.put(l)
	}
	return nil
}

func (m *memory) Renew(_ context.Context, leases []Lease) (missing []Lease, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	err = m.called("renew")
	for _, l := range leases {
		if _, ok := m.leases[nameOf(l)]; !ok && err == nil {
			missing = append(missing, l)
		}
	}
	m.calls["renewed"] = len(leases)
	if m.partial && err == nil {
		err = errAway
	}
	return missing, err
}

func (m *memory) Remove(_ context.Context, leases []Lease) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.called("remove"); err != nil {
		return err
	}
	for _, l := range leases {
		delete(m.leases, nameOf(l))
		delete(m.tabs[l.User], nameOf(l))
		if !m.online(l.User) {
			m.logs[ShardOf(l.User)] = append(m.logs[ShardOf(l.User)], Change{User: l.User, At: time.Now()})
		}
	}
	return nil
}

func (m *memory) Sweep(context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.called("sweep")
}

func (m *memory) Ask(_ context.Context, users []string) (found []Status, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.called("ask"); err != nil {
		return nil, err
	}
	for _, user := range users {
		s := Status{User: user, State: Offline}
		if m.young {
			s.State = Unknown
		}
		if m.online(user) {
			s.State = Online
		}
		found = append(found, s)
	}
	return found, nil
}

func (m *memory) Follow(_ context.Context, from [Shards]Cursor) (map[Shard]Diff, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.called("follow"); err != nil {
		return nil, err
	}
	diffs := make(map[Shard]Diff)
	for shard, cursor := range from {
		log := m.logs[Shard(shard)]
		diff := Diff{Next: Cursor{Born: m.born, Version: int64(len(log))}, Gap: cursor.Born != m.born}
		if !diff.Gap {
			diff.Changes = log[cursor.Version:]
		}
		diffs[Shard(shard)] = diff
	}
	return diffs, nil
}

func (m *memory) count(what string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.calls[what]
}

func (m *memory) change(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f()
}

// has reports how many leases the store has.
func (m *memory) has() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.leases)
}

// during runs a Tracker on a memory in a bubble of time.
func during(t *testing.T, test func(t *testing.T, tracker *Tracker, store *memory)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		store := newMemory()
		tracker := New(DefaultTiming(), store, store, panics.New(), slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- tracker.Run(ctx) }()
		test(t, tracker, store)
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// wait lets time pass.
func wait(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func tab(user string, n int) Lease { return Lease{User: user, Conn: "p-" + strconv.Itoa(n)} }

// heap is what is in use, in bytes.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// A churn of 10,000 connections costs a few calls of the store, and leaves nothing behind.
func TestChurnOfSockets(t *testing.T) {
	during(t, func(t *testing.T, tracker *Tracker, store *memory) {
		wait(time.Second)
		goroutines, before := runtime.NumGoroutine(), heap()
		var all []*Held
		for i := range 10_000 {
			all = append(all, tracker.Add(tab("user "+strconv.Itoa(i), i)))
		}
		synctest.Wait()
		if store.has() != len(all) || store.count("add") > 100 {
			t.Errorf("%d leases are written in %d calls", store.has(), store.count("add"))
		}
		wait(DefaultTiming().Heartbeat)
		if calls, leases := store.count("renew"), store.count("renewed"); calls > 2 || leases != len(all) {
			t.Errorf("%d leases are renewed in %d calls", leases, calls)
		}
		if now := runtime.NumGoroutine(); now > goroutines {
			t.Errorf("10,000 connections have %d goroutines", now-goroutines)
		}
		full := heap()
		for i, h := range all {
			if i%2 == 0 {
				tracker.Remove(h)
			} else {
				tracker.Drop(h)
			}
		}
		wait(DefaultTiming().Heartbeat)
		if store.has() != len(all)/2 || store.count("renewed") != 0 {
			t.Errorf("%d leases are left, %d are renewed", store.has(), store.count("renewed"))
		}
		if len(tracker.held) != 0 || len(tracker.left) != 0 {
			t.Errorf("%d leases and %d leaves are kept", len(tracker.held), len(tracker.left))
		}
		store.change(func() {
			store.leases, store.tabs, store.logs = map[name]Lease{}, map[string]map[name]bool{}, map[Shard][]Change{}
		})
		after := heap()
		t.Logf("heap: %d KiB before, %d with 10,000 connections, %d after them", before>>10, full>>10, after>>10)
		if after > before+(full-before)/2 {
			t.Errorf("of %d KiB for 10,000 connections %d KiB are left", (full-before)>>10, (after-before)>>10)
		}
	})
}

// A client that resumes on the same node keeps its lease, whatever happens to the old socket.
func TestResumedLeaseIsKept(t *testing.T) {
	for name, end := range map[string]func(*Tracker, *Held){"lost": (*Tracker).Drop, "left": (*Tracker).Remove} {
		t.Run(name, func(t *testing.T) {
			during(t, func(t *testing.T, tracker *Tracker, store *memory) {
				old := tracker.Add(tab("ann", 1))
				wait(time.Second)
				now := tracker.Add(tab("ann", 1))
				end(tracker, old)
				wait(2 * DefaultTiming().Heartbeat)
				if store.has() != 1 || store.count("renewed") != 1 {
					t.Errorf("%d leases, %d renewed", store.has(), store.count("renewed"))
				}
				tracker.Remove(now)
				wait(time.Second)
				if store.has() != 0 {
					t.Error("the lease outlives its user")
				}
			})
		})
	}
}

// Joins and leaves during the store's absence are written when it is back, and forgotten leases within a heartbeat.
func TestStoreGoesAway(t *testing.T) {
	during(t, func(t *testing.T, tracker *Tracker, store *memory) {
		leaver := tracker.Add(tab("ann", 1))
		tracker.Add(tab("bob", 2))
		tracker.Add(Lease{User: "bad\n", Conn: "x"})
		wait(time.Second)
		store.change(func() { store.away = true })
		tracker.Remove(leaver)
		tracker.Add(tab("cy", 3))
		wait(time.Minute)
		store.change(func() { store.away = false })
		wait(DefaultTiming().Sweep)
		if store.has() != 2 || store.leases[name{"ann", "p-1"}].User != "" {
			t.Errorf("the store has %v", store.leases)
		}
		store.change(store.forget)
		wait(DefaultTiming().Heartbeat)
		if store.has() != 2 {
			t.Errorf("after a loss the store has %v", store.leases)
		}
		store.change(func() { store.breaks = true })
		wait(DefaultTiming().Heartbeat)
		store.change(store.forget)
		wait(2 * DefaultTiming().Heartbeat)
		if store.has() != 2 {
			t.Error("a panic ends the heartbeats")
		}
	})
}

// told is what a watcher heard: one string for each message.
type told struct {
	mu       sync.Mutex // guards messages
	messages [][]Status
}

func (w *told) tell(list []Status) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.messages = append(w.messages, list)
}

func (w *told) take(t *testing.T) [][]Status {
	t.Helper()
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	taken := w.messages
	w.messages = nil
	return taken
}

// is checks that one message came, and said this of one user.
func (w *told) is(t *testing.T, want State) {
	t.Helper()
	messages := w.take(t)
	if len(messages) != 1 || len(messages[0]) != 1 || messages[0][0].State != want {
		t.Errorf("the watcher is told %v, want %s", messages, want)
	}
}

// A watcher hears of everybody at once, and of a storm of changes in a handful of messages.
func TestWatchStorm(t *testing.T) {
	during(t, func(t *testing.T, tracker *Tracker, store *memory) {
		var users []string
		for i := range 1000 {
			users = append(users, "user "+strconv.Itoa(i))
		}
		tracker.Add(tab(users[0], 1))
		wait(time.Second)
		var one, other told
		watcher := NewWatcher("one", one.tell)
		for _, w := range []*Watcher{watcher, NewWatcher("other", other.tell)} {
			if err := tracker.Watch(w, users); err != nil {
				t.Fatal(err)
			}
		}
		if first := one.take(t); len(first) != 1 || len(first[0]) != len(users) || len(other.take(t)) != 1 {
			t.Fatalf("at first the watcher is told %d times", len(first))
		}
		wait(time.Second)
		for i, user := range users[1:] {
			tracker.Add(tab(user, i))
			if i%100 == 0 {
				wait(100 * time.Millisecond)
			}
		}
		wait(2 * time.Second)
		messages, changes := one.take(t), 0
		for _, list := range messages {
			for _, status := range list {
				if changes++; status.State != Online || status.Since.IsZero() {
					t.Errorf("the watcher is told %+v", status)
				}
			}
		}
		if changes != 999 || len(messages) > 5 {
			t.Errorf("999 changes come as %d in %d messages", changes, len(messages))
		}
		if tracker.Watch(watcher, nil) != nil || tracker.watches != len(users) {
			t.Errorf("%d users are watched", tracker.watches)
		}
	})
}

func names(n int) []string {
	users := make([]string, n)
	for i := range users {
		users[i] = "user " + strconv.Itoa(i)
	}
	return users
}

// Neither one owner's watchers nor all of them together grow without bound. Whoever is refused keeps what it has.
func TestWatchesAreBounded(t *testing.T) {
	during(t, func(t *testing.T, tracker *Tracker, _ *memory) {
		half := names(maxShare / 2)
		silent := func([]Status) {}
		var tabs []*Watcher
		for range 2 {
			tabs = append(tabs, NewWatcher("ann", silent))
			if err := tracker.Watch(tabs[len(tabs)-1], half); err != nil {
				t.Fatal(err)
			}
		}
		if err := tracker.Watch(NewWatcher("ann", silent), half[:1]); !errors.Is(err, ErrShareOfWatches) {
			t.Errorf("a third tab is refused with %v", err)
		}
		if err := tracker.Watch(NewWatcher("bob", silent), half); err != nil {
			t.Errorf("another is refused: %v", err)
		}
		if err := tracker.Watch(tabs[0], append(half[1:], "new", "new")); err != nil {
			t.Errorf("another list of the same length is refused: %v", err)
		}
		tracker.mu.Lock()
		tracker.watches = maxWatches
		tracker.mu.Unlock()
		if err := tracker.Watch(NewWatcher("cy", silent), half[:1]); !errors.Is(err, ErrTooManyWatches) {
			t.Errorf("at a million one more is refused with %v", err)
		}
		tracker.mu.Lock()
		tracker.watches = 3 * len(half)
		tracker.mu.Unlock()
		for _, w := range tabs {
			_ = tracker.Watch(w, nil)
		}
		if tracker.watches != len(half) || len(tracker.shares) != 1 || tracker.find("new") != nil {
			t.Errorf("%d watches of %v are left", tracker.watches, tracker.shares)
		}
	})
}

// A part of the store that does not answer keeps nothing from the others: leases are added, and lapsed ones are swept.
func TestPartOfTheStoreIsAway(t *testing.T) {
	during(t, func(t *testing.T, tracker *Tracker, store *memory) {
		tracker.Add(tab("ann", 1))
		wait(time.Second)
		store.change(func() { store.partial, store.leases = true, map[name]Lease{} })
		wait(DefaultTiming().Heartbeat)
		swept := store.count("sweep")
		wait(2 * DefaultTiming().Sweep)
		if store.has() != 1 || store.count("sweep") < swept+2 {
			t.Errorf("the store has %d leases, and was swept %d times", store.has(), store.count("sweep")-swept)
		}
	})
}

// BenchmarkPoll is one reading of the logs while 100,000 users are watched and nobody comes or goes.
func BenchmarkPoll(b *testing.B) {
	store := newMemory()
	tracker := New(DefaultTiming(), store, store, panics.New(), slog.New(slog.DiscardHandler))
	for i := range 100 {
		if err := tracker.Watch(NewWatcher(strconv.Itoa(i), func([]Status) {}), names(100_000)[i*1000:(i+1)*1000]); err != nil {
			b.Fatal(err)
		}
	}
	for range 10 {
		tracker.follow(b.Context())
		tracker.ask(b.Context())
	}
	for b.Loop() {
		tracker.reader.polls = 0
		tracker.follow(b.Context())
		tracker.ask(b.Context())
		tracker.deliver()
	}
}

// A watcher hears each change once; that the store is away after a TTL; and nothing of a loss of the store's memory from
// which everybody comes back.
func TestWatchThroughFaults(t *testing.T) {
	during(t, func(t *testing.T, tracker *Tracker, store *memory) {
		var ear told
		watcher := NewWatcher("ear", ear.tell)
		_ = tracker.Watch(watcher, []string{"ann"})
		ear.is(t, Offline)
		held := tracker.Add(tab("ann", 1))
		wait(time.Second)
		ear.is(t, Online)
		store.change(func() { store.away = true })
		wait(DefaultTiming().TTL - time.Second)
		if got := ear.take(t); len(got) > 0 {
			t.Errorf("before a TTL the watcher is told %v", got)
		}
		wait(2 * time.Second)
		ear.is(t, Unknown)
		var late told
		_ = tracker.Watch(NewWatcher("late", late.tell), []string{"eve"})
		late.is(t, Unknown)
		store.change(func() { store.away = false })
		wait(time.Second)
		ear.is(t, Online)
		late.is(t, Offline)
		store.change(func() { // It comes back empty.
			store.young, store.born = true, 2
			store.forget()
			clear(store.logs)
		})
		wait(DefaultTiming().TTL)
		store.change(func() { store.young = false })
		wait(time.Minute)
		if got := ear.take(t); len(got) > 0 {
			t.Errorf("after a loss the watcher is told %v", got)
		}
		tracker.Remove(held)
		wait(time.Second)
		ear.is(t, Offline)
		// A change that the log lacks is found within a minute.
		store.change(func() { store.put(tab("ann", 9)) })
		wait(2 * time.Minute)
		ear.is(t, Online)
		asked := store.count("ask") + store.count("follow")
		_ = tracker.Watch(watcher, nil)
		wait(time.Second)
		if got := ear.take(t); len(got) > 0 || store.count("ask")+store.count("follow") < asked {
			t.Errorf("who watches nobody is told %v", got)
		}
	})
}

func TestLeaseNames(t *testing.T) {
	for _, l := range []Lease{{User: "ann", Conn: "1"}, {User: "ann é %{}", Conn: "1", Room: "a/b"}} {
		if err := l.Validate(); err != nil {
			t.Errorf("%q: %v", l, err)
		}
	}
	for _, l := range []Lease{{Conn: "1"}, {User: "ann"}, {User: "a\nb", Conn: "1"}, {User: "a", Conn: "1\t"}, {User: "a", Conn: "1", Room: "\n"}} {
		if err := l.Validate(); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v", l, err)
		}
	}
	// Nodes of two releases share a store.
	for user, want := range map[string]Shard{"ann": 8, "bob": 4, "user 7": 3} {
		if got := ShardOf(user); got != want {
			t.Errorf("%s is in shard %d, want %d", user, got, want)
		}
	}
}
