package redisstore

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-rtc/holdfast/internal/events"
)

// The bounds of the cluster's events, unless KeepEvents sets others.
const (
	DefaultEventsKept = 100_000
	DefaultEventsLife = 7 * 24 * time.Hour
)

// KeepEvents sets how many events the cluster keeps, and for how long. Whoever writes an event cuts by its own bounds, so all nodes
// should have the same. It is called before the store is used.
func (s *Store) KeepEvents(most int, life time.Duration) { s.eventsKept, s.eventsLife = most, life }

const eventField = "e"

var errEventsPage = errors.New("a page of events has at least one")

// AppendEvents implements events.Store, in one round trip. It may be repeated. An event that cannot be encoded is
// left out.
func (s *Store) AppendEvents(ctx context.Context, facts []events.Event) error {
	keys := []string{s.keys.events()}
	args := []any{s.eventsKept, s.eventsLife.Milliseconds()}
	for _, fact := range facts {
		text, err := fact.Encode()
		if err != nil {
			s.log.Warn("an event is left out", "kind", fact.Kind, "error", err)
			continue
		}
		digest := sha256.Sum256([]byte(fact.Same()))
		keys = append(keys, s.keys.events()+":"+base64.RawURLEncoding.EncodeToString(digest[:12]))
		args = append(args, int(fact.SameFor().Seconds()), text)
	}
	if len(keys) == 1 {
		return nil
	}
	if err := s.client.Eval(ctx, appendEventsScript, keys, args...).Err(); err != nil {
		return fmt.Errorf("append %d events: %w", len(keys)-1, err)
	}
	return nil
}

// Events returns at most limit events that follow the one with this ID, the oldest first, in one round trip. An empty
// ID begins with the oldest. Events that this version cannot read are left out. last is the ID from which to go on;
// it equals after when there is nothing more.
func (s *Store) Events(ctx context.Context, after string, limit int) (found []events.Event, last string, err error) {
	if limit < 1 {
		return nil, after, errEventsPage
	}
	from := "-"
	if after != "" {
		if _, err := events.TimeOf(after); err != nil {
			return nil, after, err //nolint:wrapcheck // it says what an ID is
		}
		from = "(" + after
	}
	entries, err := s.client.XRangeN(ctx, s.keys.events(), from, "+", int64(limit)).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, after, fmt.Errorf("read events: %w", err)
	}
	last = after
	for _, entry := range entries {
		last = entry.ID
		text, _ := entry.Values[eventField].(string)
		if e, err := events.Parse(entry.ID, text); err == nil {
			found = append(found, e)
		}
	}
	return found, last, nil
}
