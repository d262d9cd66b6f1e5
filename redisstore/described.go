package redisstore

import (
	"context"
	"fmt"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-rtc/holdfast/ring"
)

// maxDescribed bounds the rooms that are listed; the oldest are left out.
const maxDescribed = 20_000

// noteDescribed has Described find the room.
func (s *Store) noteDescribed(ctx context.Context, room ring.RoomID) error {
	key := s.keys.described()
	_, err := s.client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		pipe.ZAdd(ctx, key, redis.Z{Score: float64(s.Now().UnixMilli()), Member: string(room)})
		pipe.ZRemRangeByRank(ctx, key, 0, -maxDescribed-1)
		return nil
	})
	if err != nil {
		return fmt.Errorf("note that room %s is described: %w", room, err)
	}
	return nil
}

// Described returns the settings of every room that an application has described and that is not forgotten, as a media node writes them,
// and forgets the names of the others.
func (s *Store) Described(ctx context.Context) (map[ring.RoomID]string, error) {
	names, err := s.client.ZRange(ctx, s.keys.described(), 0, -1).Result()
	if err != nil {
		return nil, fmt.Errorf("list the described rooms: %w", err)
	}
	settings, gone := map[ring.RoomID]string{}, []any{}
	for part := range slices.Chunk(names, roomsPerPipeline) {
		pipe := s.client.Pipeline()
		reads := make([]*redis.SliceCmd, len(part))
		for i, name := range part {
			reads[i] = pipe.HMGet(ctx, s.keys.door(ring.RoomID(name)), "set", "cap", "closed", "room")
		}
		// Each command has its own error.
		_, _ = pipe.Exec(ctx)
		for i, read := range reads {
			values, err := read.Result()
			switch text, described := settingsIn(values); {
			case err != nil && !redis.HasErrorPrefix(err, "WRONGTYPE"):
				return nil, fmt.Errorf("read the door of room %s: %w", part[i], err)
			case described:
				settings[ring.RoomID(part[i])] = text
			default:
				gone = append(gone, part[i])
			}
		}
	}
	if len(gone) > 0 {
		if err := s.client.ZRem(ctx, s.keys.described(), gone...).Err(); err != nil {
			s.log.Debug("rooms are still listed as described", "rooms", len(gone), "error", err)
		}
	}
	return settings, nil
}

// settingsIn is the text that write_roster.lua returns.
func settingsIn(values []any) (text string, described bool) {
	const fields = 4
	if len(values) != fields {
		return "", false
	}
	var words [fields]string
	for i, value := range values {
		words[i], _ = value.(string)
	}
	return words[0] + " " + words[1] + " " + words[2] + " " + words[3], words[3] != ""
}
