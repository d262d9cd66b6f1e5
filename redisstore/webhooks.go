package redisstore

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-rtc/holdfast/internal/events"
	"github.com/holdfast-rtc/holdfast/internal/webhook"
	"github.com/holdfast-rtc/holdfast/people/roster"
	"github.com/holdfast-rtc/holdfast/ring"
)

const (
	// webhooksWanted outlives a restart of all signaling nodes, so that what happens meanwhile is queued.
	webhooksWanted = time.Hour
	// What receivers were told of a room is prolonged whenever the room is looked at.
	webhooksKept = 24 * time.Hour
	// webhooksQueued bounds the facts of a room that wait. The oldest are dropped.
	webhooksQueued = 10_000
	// marksOverlap is how far marks are read again, because two nodes may mark rooms in the same millisecond.
	marksOverlap = 2 * time.Second
)

// webhooks is the state of a store's client for webhooks.
type webhooks struct {
	wanted atomic.Bool

	mu sync.Mutex
	// unmarked are rooms whose mark could not be written. guarded by mu
	unmarked map[ring.RoomID]bool
}

// WebhooksWanted reports whether a signaling node has asked for facts within the last hour. It also writes the marks that could
// not be written before.
func (s *Store) WebhooksWanted(ctx context.Context) (bool, error) {
	found, err := s.client.Exists(ctx, s.keys.hooks("wanted")).Result()
	if err != nil {
		return false, fmt.Errorf("ask whether webhooks are wanted: %w", err)
	}
	s.hooks.wanted.Store(found > 0)
	s.mark(ctx, nil)
	return found > 0, nil
}

// Lead implements webhook.Store.
func (s *Store) Lead(ctx context.Context, sender string, life time.Duration) (bool, error) {
	got, err := s.client.Eval(ctx, webhookLeadScript, []string{s.keys.hooks("wanted"), s.keys.hooks("lease")},
		sender, life.Milliseconds(), int(webhooksWanted.Seconds())).Int()
	if err != nil {
		return false, fmt.Errorf("lease of the sender of webhooks: %w", err)
	}
	s.hooks.wanted.Store(true)
	return got == 1, nil
}

// mark marks rooms, and those whose mark failed before. One that fails is tried again later.
func (s *Store) mark(ctx context.Context, rooms []ring.RoomID) {
	s.hooks.mu.Lock()
	for _, room := range rooms {
		s.hooks.unmarked[room] = true
	}
	names := make([]any, 0, len(s.hooks.unmarked))
	for room := range s.hooks.unmarked {
		names = append(names, string(room))
	}
	s.hooks.mu.Unlock()
	if len(names) == 0 {
		return
	}
	if err := s.client.Eval(ctx, webhookMarkScript, []string{s.keys.hooks("rooms")}, names...).Err(); err != nil {
		s.log.Debug("rooms are not marked for webhooks yet", "rooms", len(names), "error", err)
		return
	}
	s.hooks.mu.Lock()
	defer s.hooks.mu.Unlock()
	for _, name := range names {
		delete(s.hooks.unmarked, ring.RoomID(name.(string)))
	}
}

// Marked implements webhook.Store.
func (s *Store) Marked(ctx context.Context, since int64) (rooms []ring.RoomID, last int64, err error) {
	from := max(since-marksOverlap.Milliseconds(), 0)
	found, err := s.client.ZRangeByScoreWithScores(ctx, s.keys.hooks("rooms"), &redis.ZRangeBy{Min: fmt.Sprint(from), Max: "+inf"}).Result()
	if err != nil {
		return nil, since, fmt.Errorf("rooms that are marked for webhooks: %w", err)
	}
	last = since
	for _, z := range found {
		name, _ := z.Member.(string)
		rooms, last = append(rooms, ring.RoomID(name)), max(last, int64(z.Score))
	}
	return rooms, last, nil
}

// Look implements webhook.Store.
func (s *Store) Look(ctx context.Context, cursor uint64, most int) (rooms []ring.RoomID, next uint64, err error) {
	names, next, err := s.client.ZScan(ctx, s.keys.hooks("rooms"), cursor, "", int64(most)).Result()
	if err != nil {
		return nil, cursor, fmt.Errorf("scan the rooms of webhooks: %w", err)
	}
	pipe := s.client.Pipeline()
	var looks []*redis.Cmd
	// Each member is followed by its score.
	for i := 0; i+1 < len(names); i += 2 {
		rooms = append(rooms, ring.RoomID(names[i]))
		looks = append(looks, s.follow(ctx, pipe, ring.RoomID(names[i]), "", true, nil))
	}
	// Each command has its own error.
	_, _ = pipe.Exec(ctx)
	var over []any
	for i, look := range looks {
		if answer, err := followed(look); err == nil && answer.over {
			over = append(over, string(rooms[i]))
		}
	}
	if len(over) > 0 {
		if err := s.client.Eval(ctx, webhookForgetScript, []string{s.keys.hooks("rooms")}, over...).Err(); err != nil {
			return rooms, next, fmt.Errorf("forget %d rooms of webhooks: %w", len(over), err)
		}
	}
	return rooms, next, nil
}

// Waiting implements webhook.Store.
func (s *Store) Waiting(ctx context.Context, room ring.RoomID, receiver string, most int) (facts []webhook.Fact, dropped int, err error) {
	if room == "" {
		facts, err = s.nodesDown(ctx, receiver, most)
		return facts, 0, err
	}
	keys := s.keys.webhookKeys(room)
	sent, err := s.client.HGet(ctx, keys[2], "@sent:"+mark(receiver)).Uint64()
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, 0, fmt.Errorf("position of webhooks in room %s: %w", room, err)
	}
	entries, err := s.client.XRangeN(ctx, keys[3], fmt.Sprintf("%d-0", sent+1), "+", int64(most)).Result()
	if err != nil {
		return nil, 0, fmt.Errorf("webhooks of room %s: %w", room, err)
	}
	for i, entry := range entries {
		position, fields := strings.TrimSuffix(entry.ID, "-0"), make(map[string]string, len(entry.Values))
		for name, value := range entry.Values {
			fields[name], _ = value.(string)
		}
		fact, err := webhook.Read(room, position, fields)
		if err != nil {
			s.log.Warn("an entry of the webhooks is left out", "error", err)
			fact = webhook.Fact{Position: position, Room: room}
		}
		if first, fine := number(position); i == 0 && sent > 0 && fine && first > int64(sent)+1 { //nolint:gosec // milliseconds
			dropped = int(first - int64(sent) - 1) //nolint:gosec // as above
		}
		facts = append(facts, fact)
	}
	return facts, dropped, nil
}

// nodesDown reads the deaths of nodes from the cluster's events, which begin when a receiver is asked for the first time.
func (s *Store) nodesDown(ctx context.Context, receiver string, most int) (facts []webhook.Fact, err error) {
	after, err := s.client.HGet(ctx, s.keys.hooks("nodes"), mark(receiver)).Result()
	if errors.Is(err, redis.Nil) {
		// Not the start of this process: what happened while the first sender waited for its lease counts.
		after = events.Before(s.Now().Add(-marksOverlap))
		err = s.client.HSetNX(ctx, s.keys.hooks("nodes"), mark(receiver), after).Err()
	}
	if err != nil {
		return nil, fmt.Errorf("position of webhooks in the events: %w", err)
	}
	for len(facts) < most {
		found, last, err := s.Events(ctx, after, most)
		if err != nil || last == after {
			return facts, err
		}
		for _, e := range found {
			if e.Kind == events.NodeDown {
				facts = append(facts, webhook.Fact{Position: e.ID, Kind: webhook.NodeDown, At: e.At, From: e.Node, Cause: e.Cause, About: e.ID})
			}
		}
		after = last
	}
	return facts, nil
}

// Sent implements webhook.Store.
func (s *Store) Sent(ctx context.Context, room ring.RoomID, position, receiver string, receivers []string) error {
	var err error
	if room == "" {
		err = s.client.HSet(ctx, s.keys.hooks("nodes"), mark(receiver), position).Err()
	} else {
		args := []any{mark(receiver), position, int(webhooksKept.Seconds())}
		for _, one := range receivers {
			args = append(args, mark(one))
		}
		err = s.client.Eval(ctx, webhookSentScript, s.keys.webhookKeys(room)[2:4], args...).Err()
	}
	if err != nil {
		return fmt.Errorf("note that webhooks of room %s were sent: %w", room, err)
	}
	return nil
}

// mark is the name of a receiver in the store, which does not show the URL: it may contain a password.
func mark(receiver string) string {
	sum := sha256.Sum256([]byte(receiver))
	const shown = 9
	return base64.RawURLEncoding.EncodeToString(sum[:shown])
}

// follow queues the difference between a room's roster and what receivers know. It follows a write of the owner whose pin is given,
// or, with no pin, looks at what stands.
func (s *Store) follow(ctx context.Context, to redis.Cmdable, room ring.RoomID, owner string, whole bool, c *roster.Change) *redis.Cmd {
	if c == nil {
		c = &roster.Change{SID: roster.NewSID()}
	}
	args := []any{owner, whole, c.SID, webhooksQueued, int(webhooksKept.Seconds()), c.Closed, len(c.Put)}
	for i := range c.Put {
		args = append(args, c.Put[i].ID, shows(c.Put[i].Shows))
	}
	for i := range c.Drop {
		p, gone := &c.Drop[i].Peer, s.Now().Add(-max(time.Since(c.Drop[i].LastSeen), 0))
		args = append(args, p.ID, rowHead(p)+fmt.Sprintf("%d %s", gone.UnixMilli(), p.Name))
	}
	return to.Eval(ctx, webhookFollowScript, s.keys.webhookKeys(room), args...)
}

// shows are the words of the sources that the script compares, or "?".
func shows(what roster.Sources) string {
	if what&roster.SourcesKnown == 0 {
		return "?"
	}
	var words []string
	for _, source := range []struct {
		bit  roster.Sources
		word string
	}{{roster.Microphone, webhook.Microphone}, {roster.Camera, webhook.Camera}, {roster.Screen, webhook.Screen}, {roster.ScreenAudio, webhook.ScreenAudio}} {
		if what&source.bit != 0 {
			words = append(words, source.word)
		}
	}
	return strings.Join(words, " ")
}

// rowHead begins a peer's row in a roster.
func rowHead(p *roster.Peer) string {
	who := strings.ReplaceAll(cmp.Or(p.Identity, p.ID), "\n", " ") + "\n"
	if p.Hidden {
		who = "\n" + who
	}
	return who
}

// markNew marks rooms before the first facts of them are queued, so that a sender finds these also if this node dies meanwhile.
func (s *Store) markNew(ctx context.Context, changes []roster.Change) {
	var rooms []ring.RoomID
	for i := range changes {
		if changes[i].Told && changes[i].After == 0 {
			rooms = append(rooms, changes[i].Room)
		}
	}
	if len(rooms) > 0 {
		s.mark(ctx, rooms)
	}
}

// heed takes the answer of follow into the change. It returns false if the facts may not be queued.
func (s *Store) heed(reply *redis.Cmd, c *roster.Change) bool {
	answer, err := followed(reply)
	if err != nil {
		s.log.Warn("facts for webhooks are not queued yet", "room", string(c.Room), "error", err)
		return false
	}
	if answer.sid != "" {
		c.SID = answer.sid
	}
	c.News = answer.added > 0
	return true
}

// markTold marks the rooms of which there is news.
func (s *Store) markTold(ctx context.Context, changes []roster.Change) {
	var rooms []ring.RoomID
	for i := range changes {
		if changes[i].News {
			rooms = append(rooms, changes[i].Room)
		}
	}
	if len(rooms) > 0 {
		s.mark(ctx, rooms)
	}
}

type followAnswer struct {
	added int64
	sid   string
	over  bool
}

func followed(reply *redis.Cmd) (followAnswer, error) {
	answer, err := reply.Slice()
	if err != nil {
		return followAnswer{}, err
	}
	if len(answer) != 3 {
		return followAnswer{}, errAnswer
	}
	added, counted := answer[0].(int64)
	sid, named := answer[1].(string)
	over, said := answer[2].(int64)
	if !counted || !named || !said {
		return followAnswer{}, errAnswer
	}
	return followAnswer{added: added, sid: sid, over: over == 1}, nil
}

// followGone has receivers told of a room whose pin was removed.
func (s *Store) followGone(ctx context.Context, room ring.RoomID) {
	if !s.hooks.wanted.Load() {
		return
	}
	// If it fails, the sender finds the room later.
	if answer, err := followed(s.follow(ctx, s.client, room, "", true, nil)); err == nil && answer.added > 0 {
		s.mark(ctx, []ring.RoomID{room})
	}
}
