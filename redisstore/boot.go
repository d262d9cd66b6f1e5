package redisstore

import (
	"context"
	"fmt"
	"time"
)

// bootKept is above the life of a pin, and above the time for which gossip remembers a departure.
const bootKept = 2 * time.Hour

// BeginBoot returns the time that a starting process takes into its boot id: at least now, the store's clock, and a millisecond after
// every time that it returned before for this name. So a later boot has a higher id though the machine's clock was set back in
// between. One round trip; a repeated call returns a later time.
func (s *Store) BeginBoot(ctx context.Context, name string, now time.Time) (time.Time, error) {
	milliseconds, err := s.client.Eval(ctx, bootScript, []string{s.keys.boot(name)}, now.UnixMilli(), bootKept.Milliseconds()).Int64()
	if err != nil {
		return time.Time{}, fmt.Errorf("begin a boot of %s: %w", name, err)
	}
	return time.UnixMilli(milliseconds), nil
}
