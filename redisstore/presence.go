package redisstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-rtc/holdfast/internal/failpoint"
	"github.com/holdfast-rtc/holdfast/people/presence"
	"github.com/holdfast-rtc/holdfast/ring"
)

const (
	presenceInfix = ":presence:{"
	// perScript bounds a script to a millisecond of the server's time.
	perScript = 250
	// maxSweeps bounds one call. Each sweep handles up to perSweep leases.
	maxSweeps = 50
	perSweep  = 200
)

// Presence keeps the leases of all users. Its calls may be repeated. After an error some shards did not answer.
type Presence struct {
	store  *Store
	timing presence.Timing
	keys   [presence.Shards]presenceKeys
}

var (
	_ presence.LeaseStore = (*Presence)(nil)
	_ presence.WatchStore = (*Presence)(nil)

	errNotALine = errors.New("not a line of presence")
)

type presenceKeys struct{ head, leases, users, seen, log, gone string }

// Presence returns the leases in this store.
func (s *Store) Presence(timing presence.Timing) *Presence {
	p := &Presence{store: s, timing: timing}
	for found, n := 0, 0; found < presence.Shards; n++ {
		tag := strconv.Itoa(n)
		shard := &p.keys[slotOf(tag)*presence.Shards/slotCount]
		if shard.head == "" {
			*shard = s.keys.presence(tag)
			found++
		}
	}
	return p
}

func (k keyspace) presence(tag string) presenceKeys {
	at := string(k) + presenceInfix + tag + "}:"
	return presenceKeys{at + "head", at + "leases", at + "users", at + "seen", at + "log", at + "gone"}
}

func (k presenceKeys) all() []string {
	return []string{k.head, k.leases, k.users, k.seen, k.log, k.gone}
}

func member(l presence.Lease) string { return l.User + "\n" + l.Conn }

// part is what one script is given.
type part[T any] struct {
	keys  presenceKeys
	shard presence.Shard
	items []T
	reply *redis.Cmd
}

func divide[T any](p *Presence, items []T, user func(T) string) []*part[T] {
	var shards [presence.Shards][]T
	for _, item := range items {
		shard := presence.ShardOf(user(item))
		shards[shard] = append(shards[shard], item)
	}
	var parts []*part[T]
	for shard, all := range shards {
		for some := range slices.Chunk(all, perScript) {
			parts = append(parts, &part[T]{keys: p.keys[shard], shard: presence.Shard(shard), items: some})
		}
	}
	return parts
}

func execute[T any](ctx context.Context, p *Presence, what string, parts []*part[T], queue func(redis.Pipeliner, *part[T]) *redis.Cmd) error {
	if len(parts) == 0 {
		return nil
	}
	pipe := p.store.client.Pipeline()
	for _, one := range parts {
		one.reply = queue(pipe, one)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

func leaseUser(l presence.Lease) string { return l.User }

func (p *Presence) ttl() int64 { return p.timing.TTL.Milliseconds() }

// Add implements presence.LeaseStore.
func (p *Presence) Add(ctx context.Context, leases []presence.Lease) error {
	for _, l := range leases {
		if err := l.Validate(); err != nil {
			return err
		}
	}
	return execute(ctx, p, "add leases", divide(p, leases, leaseUser), func(pipe redis.Pipeliner, one *part[presence.Lease]) *redis.Cmd {
		args := []any{p.ttl()}
		for _, l := range one.items {
			args = append(args, l.User, l.Conn, string(l.Room), l.Since.UnixMilli())
		}
		return pipe.Eval(ctx, addScript, one.keys.all(), args...)
	})
}

// Renew implements presence.LeaseStore.
func (p *Presence) Renew(ctx context.Context, leases []presence.Lease) (missing []presence.Lease, err error) {
	parts := divide(p, leases, leaseUser)
	err = execute(ctx, p, "renew leases", parts, func(pipe redis.Pipeliner, one *part[presence.Lease]) *redis.Cmd {
		return pipe.Eval(ctx, heartbeatScript, []string{one.keys.leases}, members(one.items)...)
	})
	for _, one := range parts {
		// If the reply is an error, execute has returned it.
		places, _ := one.reply.Int64Slice()
		for _, place := range places {
			if place >= 1 && int(place) <= len(one.items) {
				missing = append(missing, one.items[place-1])
			}
		}
	}
	return missing, err
}

func members(leases []presence.Lease) []any {
	list := make([]any, len(leases))
	for i, l := range leases {
		list[i] = member(l)
	}
	return list
}

// Remove implements presence.LeaseStore.
func (p *Presence) Remove(ctx context.Context, leases []presence.Lease) error {
	return execute(ctx, p, "remove leases", divide(p, leases, leaseUser), func(pipe redis.Pipeliner, one *part[presence.Lease]) *redis.Cmd {
		return pipe.Eval(ctx, removeScript, one.keys.all(), append([]any{p.ttl()}, members(one.items)...)...)
	})
}

// Sweep implements presence.LeaseStore. Each half has its own part of the time, because a master that does not answer
// uses it up.
func (p *Presence) Sweep(ctx context.Context) error {
	failpoint.Hit("sweep.before")
	half, cancel := halfOf(ctx)
	first := p.sweepShards(half, 0, presence.Shards/2, "sweep.between")
	cancel()
	return errors.Join(first, p.sweepShards(ctx, presence.Shards/2, presence.Shards, "sweep.evicted"))
}

func (p *Presence) sweepShards(ctx context.Context, from, to int, step string) error {
	var parts []*part[struct{}]
	for shard := from; shard < to; shard++ {
		parts = append(parts, &part[struct{}]{keys: p.keys[shard], shard: presence.Shard(shard)})
	}
	evicts := false
	for range maxSweeps {
		if err := p.sweep(ctx, parts); err != nil {
			return err
		}
		parts = slices.DeleteFunc(parts, func(one *part[struct{}]) bool {
			lapsed, err := one.reply.Int()
			evicts = evicts || lapsed > 0
			return err != nil || lapsed < perSweep
		})
		if len(parts) == 0 {
			break
		}
	}
	if evicts {
		failpoint.Hit(step)
	}
	return nil
}

// sweep believes leases for a third of the TTL, which is less than a lease has left after a heartbeat.
func (p *Presence) sweep(ctx context.Context, parts []*part[struct{}]) error {
	return execute(ctx, p, "sweep leases", parts, func(pipe redis.Pipeliner, one *part[struct{}]) *redis.Cmd {
		return pipe.Eval(ctx, sweepScript, one.keys.all(), p.ttl(), p.timing.Sweep.Milliseconds()/2, p.ttl()/3)
	})
}

// Ask leaves out shards that do not answer. The order of the answer is not that of users.
func (p *Presence) Ask(ctx context.Context, users []string) ([]presence.Status, error) {
	parts := divide(p, users, func(user string) string { return user })
	err := execute(ctx, p, "ask for users", parts, func(pipe redis.Pipeliner, one *part[string]) *redis.Cmd {
		args := make([]any, len(one.items))
		for i, user := range one.items {
			args[i] = user
		}
		return pipe.Eval(ctx, askScript, []string{one.keys.head, one.keys.users, one.keys.seen}, args...)
	})
	var found []presence.Status
	for _, one := range parts {
		some, fault := statuses(one.items, one.reply)
		if err == nil && fault != nil {
			err = fmt.Errorf("ask for users: %w", fault)
		}
		found = append(found, some...)
	}
	return found, err
}

func statuses(users []string, reply *redis.Cmd) ([]presence.Status, error) {
	fields, err := reply.Slice()
	if err != nil {
		return nil, err
	}
	if len(fields) != 3 {
		return nil, errAnswer
	}
	settled, _ := fields[0].(int64)
	lines, _ := fields[1].([]any)
	seen, _ := fields[2].([]any)
	if len(lines) != len(users) || len(seen) != len(users) {
		return nil, errAnswer
	}
	found := make([]presence.Status, 0, len(users))
	for i, user := range users {
		status := presence.Status{User: user, State: presence.Unknown}
		if settled != 0 {
			status.State = presence.Offline
		}
		if line, ok := lines[i].(string); ok {
			if status, err = readStatus(user, line); err != nil {
				return found, err
			}
		} else if at, ok := seen[i].(string); ok {
			status.LastSeen = milliseconds(at)
		}
		found = append(found, status)
	}
	return found, nil
}

func readStatus(user, line string) (presence.Status, error) {
	since, rest, _ := strings.Cut(line, "\n")
	status := presence.Status{User: user, State: presence.Online, Since: milliseconds(since)}
	for connection := range strings.SplitSeq(rest, "\n") {
		_, room, ok := strings.Cut(connection, "\t")
		if !ok {
			return presence.Status{}, fmt.Errorf("%w: user %.60q", errNotALine, user)
		}
		status.Connections++
		if room != "" && !slices.Contains(status.Rooms, ring.RoomID(room)) {
			status.Rooms = append(status.Rooms, ring.RoomID(room))
		}
	}
	if status.Since.IsZero() {
		return presence.Status{}, fmt.Errorf("%w: user %.60q", errNotALine, user)
	}
	return status, nil
}

// milliseconds returns the zero time for a text that is no number.
func milliseconds(text string) time.Time {
	// A score may be written as 1e12.
	at, err := strconv.ParseFloat(text, 64)
	if err != nil || at < 1 || at > 1<<53 {
		return time.Time{}
	}
	return time.UnixMilli(int64(at))
}

// Follow implements presence.WatchStore.
func (p *Presence) Follow(ctx context.Context, from [presence.Shards]presence.Cursor) (map[presence.Shard]presence.Diff, error) {
	parts := make([]*part[presence.Cursor], presence.Shards)
	for shard, cursor := range from {
		parts[shard] = &part[presence.Cursor]{keys: p.keys[shard], shard: presence.Shard(shard), items: []presence.Cursor{cursor}}
	}
	err := execute(ctx, p, "follow the logs", parts, func(pipe redis.Pipeliner, one *part[presence.Cursor]) *redis.Cmd {
		return pipe.Eval(ctx, followScript, []string{one.keys.head, one.keys.log}, one.items[0].Born, one.items[0].Version)
	})
	diffs := make(map[presence.Shard]presence.Diff, len(parts))
	for _, one := range parts {
		diff, fault := readDiff(one.reply)
		if fault == nil {
			diffs[one.shard] = diff
		} else if err == nil {
			err = fmt.Errorf("follow the logs: %w", fault)
		}
	}
	return diffs, err
}

func readDiff(reply *redis.Cmd) (presence.Diff, error) {
	fields, err := reply.Slice()
	if err != nil {
		return presence.Diff{}, err
	}
	if len(fields) != 3 {
		return presence.Diff{}, errAnswer
	}
	text, _ := fields[0].(string)
	born, err := strconv.ParseInt(text, 10, 64)
	version, ok := fields[1].(int64)
	if err != nil || !ok {
		return presence.Diff{}, errAnswer
	}
	diff := presence.Diff{Next: presence.Cursor{Born: born, Version: version}}
	lines, ok := fields[2].([]any)
	diff.Gap = !ok
	for _, line := range lines {
		text, _ := line.(string)
		change, err := readChange(text)
		if err != nil {
			return presence.Diff{}, err
		}
		diff.Changes = append(diff.Changes, change)
	}
	return diff, nil
}

func readChange(line string) (presence.Change, error) {
	head, user, ok := strings.Cut(line, " ")
	at, joined := strings.CutPrefix(head, "+")
	if !joined {
		var left bool
		at, left = strings.CutPrefix(head, "-")
		ok = ok && left
	}
	change := presence.Change{User: user, Online: joined, At: milliseconds(at)}
	if !ok || user == "" || change.At.IsZero() {
		return presence.Change{}, fmt.Errorf("%w: %.60q", errNotALine, line)
	}
	return change, nil
}

// Count counts online users.
func (p *Presence) Count(ctx context.Context) (users int64, err error) {
	pipe := p.store.client.Pipeline()
	var counts []*redis.IntCmd
	for _, keys := range p.keys {
		counts = append(counts, pipe.HLen(ctx, keys.users))
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return 0, fmt.Errorf("count users: %w", err)
	}
	for _, count := range counts {
		users += count.Val()
	}
	return users, nil
}

// List returns a page of the users who are online, and the number of the next page; 0 is the beginning and the end. A
// user who is online throughout is listed, some of them twice.
func (p *Presence) List(ctx context.Context, page uint64) (users []presence.Status, next uint64, err error) {
	shard, cursor := page%presence.Shards, page/presence.Shards
	pairs, cursor, err := p.store.client.HScan(ctx, p.keys[shard].users, cursor, "", scanCount).Result()
	if err != nil {
		return nil, 0, fmt.Errorf("list users: %w", err)
	}
	for pair := range slices.Chunk(pairs, 2) {
		status, err := readStatus(pair[0], pair[len(pair)-1])
		if err != nil {
			return nil, 0, fmt.Errorf("list users: %w", err)
		}
		users = append(users, status)
	}
	if cursor == 0 {
		shard++
	}
	if shard == presence.Shards {
		return users, 0, nil
	}
	return users, cursor*presence.Shards + shard, nil
}
