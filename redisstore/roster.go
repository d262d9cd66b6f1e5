package redisstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-rtc/holdfast/people/roster"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

const (
	// orphanTTL is longer than the time in which the people of a dead node come back.
	orphanTTL = 45 * time.Second

	// rosterMark begins the fields of a roster that are not peers.
	rosterMark = "@"
	// waitMark begins the fields of peers who are on their way.
	waitMark = "@wait:"
)

var errNotAPeer = errors.New("not a peer of a roster")

// WriteRosters implements roster.Store, in one round trip. A change whose outcome is Failed may be written
// nevertheless.
func (s *Store) WriteRosters(ctx context.Context, changes []roster.Change) ([]roster.Outcome, error) {
	outcomes, errs, rooms := make([]roster.Outcome, len(changes)), make([]error, len(changes)), make([]ring.RoomID, len(changes))
	for i := range changes {
		errs[i], rooms[i] = errBroke, changes[i].Room
	}
	s.markNew(ctx, changes)
	s.onMasters(ctx, rooms, "writing rosters broke", func(ctx context.Context, part []int) {
		pipe := s.client.Pipeline()
		replies, followers := make([]*redis.Cmd, len(part)), make([]*redis.Cmd, len(part))
		for i, at := range part {
			replies[i] = pipe.Eval(ctx, rosterScript, s.keys.rosterKeys(rooms[at]), rosterArgs(&changes[at])...)
			if c := &changes[at]; c.Told {
				followers[i] = s.follow(ctx, pipe, c.Room, c.Pin.Encode(), c.After == 0, c)
			}
		}
		// Each command has its own error.
		_, _ = pipe.Exec(ctx)
		for i, at := range part {
			outcomes[at], errs[at] = written(replies[i], &changes[at])
			if followers[i] != nil && outcomes[at] == roster.Written && !s.heed(followers[i], &changes[at]) {
				// The writer repeats the change as a whole roster.
				outcomes[at] = roster.Failed
			}
		}
	})
	s.markTold(ctx, changes)
	var failed error
	for i, err := range errs {
		if err != nil && (failed == nil || errors.Is(failed, pin.ErrUnreachable)) {
			failed = fmt.Errorf("write the roster of room %s: %w", rooms[i], s.unreachable(ctx, rooms[i], err))
		}
	}
	return outcomes, failed
}

func written(reply *redis.Cmd, c *roster.Change) (roster.Outcome, error) {
	answer, err := reply.Slice()
	if err != nil {
		return roster.Failed, err
	}
	if len(answer) != 2 {
		return roster.Failed, errAnswer
	}
	code, fine := number(answer[0])
	door, isText := answer[1].(string)
	if outcome := roster.Outcome(code); fine && isText && outcome >= roster.Written && outcome <= roster.Fenced {
		if outcome == roster.Written {
			c.Door = door
		}
		return outcome, nil
	}
	return roster.Failed, errAnswer
}

func rosterArgs(c *roster.Change) []any {
	const head, each = 6, 4
	args := make([]any, 0, head+each*(len(c.Put)+len(c.Drop)))
	after := int64(c.After) //nolint:gosec // a count of writes
	if c.After == 0 && c.Settled {
		after = -1
	}
	args = append(args, c.Pin.Encode(), c.Seq, after, int(pinTTL.Seconds()), c.Door, len(c.Put))
	for i := range c.Put {
		args = appendPeer(args, &c.Put[i], c.Put[i].Since)
	}
	for i := range c.Drop {
		args = appendPeer(args, &c.Drop[i].Peer, c.Drop[i].LastSeen)
	}
	return args
}

func appendPeer(args []any, p *roster.Peer, at time.Time) []any {
	return append(args, p.ID, rowHead(p), p.Name, max(time.Since(at).Milliseconds(), 0))
}

// Roster returns who is in the room, in one round trip.
func (s *Store) Roster(ctx context.Context, room ring.RoomID) (roster.Room, error) {
	found, err := s.roster(ctx, room)
	if err != nil {
		return roster.Room{}, fmt.Errorf("roster of room %s: %w", room, err)
	}
	found.AsOf = s.Now()
	return found, nil
}

func (s *Store) roster(ctx context.Context, room ring.RoomID) (roster.Room, error) {
	m := s.sole
	if m == nil {
		var err error
		if m, err = s.masterOf(ctx, room); err == nil {
			found, err := m.roster(ctx, room)
			if to := s.movedTo(err); to != nil {
				found, err = to.roster(ctx, room)
			}
			if err == nil || ctx.Err() != nil {
				return found, err
			}
		}
		// As in Store.claim.
		s.cluster.ReloadState(ctx)
		pipe := s.cluster.Pipeline()
		question := queueRoster(ctx, pipe, s.keys.rosterKeys(room))
		_, _ = pipe.Exec(ctx)
		return question.read(room)
	}
	return m.roster(ctx, room)
}

// roster reads the marker last, as master.send does.
func (m *master) roster(ctx context.Context, room ring.RoomID) (roster.Room, error) {
	pipe := m.client.Pipeline()
	question := queueRoster(ctx, pipe, m.keys.rosterKeys(room))
	marker := m.readMarker(ctx, pipe)
	_, _ = pipe.Exec(ctx)
	found, err := question.read(room)
	found.In = m.incarnationOf(marker.Result())
	return found, err
}

type rosterQuestion struct {
	pin  *redis.StringCmd
	all  *redis.MapStringStringCmd
	left *redis.ZSliceCmd
}

func queueRoster(ctx context.Context, pipe redis.Pipeliner, keys []string) rosterQuestion {
	return rosterQuestion{
		pin: pipe.Get(ctx, keys[0]), all: pipe.HGetAll(ctx, keys[1]),
		left: pipe.ZRevRangeWithScores(ctx, keys[2], 0, roster.MaxLeft-1),
	}
}

// read leaves out fields that it cannot read; the roster is not current then.
func (q rosterQuestion) read(room ring.RoomID) (roster.Room, error) {
	found, err := roster.Room{}, error(nil)
	if found.Pin, err = pinIn(room, q.pin); err != nil && !errors.Is(err, redis.Nil) && !errors.Is(err, pin.ErrCorrupt) && !errors.Is(err, pin.ErrLater) {
		return roster.Room{}, err
	}
	for _, err := range []error{q.all.Err(), q.left.Err()} {
		if err != nil && !redis.HasErrorPrefix(err, "WRONGTYPE") {
			return roster.Room{}, err
		}
	}
	fields := q.all.Val()
	found.Current = err == nil && fields[rosterMark+"pin"] == found.Pin.Encode() || errors.Is(err, redis.Nil)
	if errors.Is(err, redis.Nil) {
		fields = nil
	}
	for id, text := range fields {
		if strings.HasPrefix(id, rosterMark) {
			found.Current = found.Current && !strings.HasPrefix(id, waitMark)
			continue
		}
		p, err := readPeer(id, text)
		if err != nil {
			found.Current = false
			continue
		}
		found.Peers = append(found.Peers, p)
	}
	roster.Sort(found.Peers)
	found.Left = readLeft(q.left.Val(), found.Peers)
	return found, nil
}

// readPeer reads "<identity>\
// <since> <name>", which stands after another newline if the peer is hidden. since is in Unix milliseconds of the
// store.
func readPeer(id, text string) (roster.Peer, error) {
	text, hidden := strings.CutPrefix(text, "\n")
	identity, rest, _ := strings.Cut(text, "\n")
	at, name, ok := strings.Cut(rest, " ")
	since := milliseconds(at)
	if !ok || identity == "" || since.IsZero() {
		return roster.Peer{}, fmt.Errorf("%w: %.60q", errNotAPeer, text)
	}
	return roster.Peer{ID: id, Identity: identity, Name: name, Hidden: hidden, Since: since}, nil
}

func readLeft(members []redis.Z, here []roster.Peer) (left []roster.Leave) {
	known := make(map[string]bool, len(here))
	for _, p := range here {
		known[p.Identity] = true
	}
	for _, z := range members {
		text, _ := z.Member.(string)
		identity, name, ok := strings.Cut(text, "\n")
		if !ok || known[identity] {
			continue
		}
		known[identity] = true
		left = append(left, roster.Leave{Peer: roster.Peer{Identity: identity, Name: name}, LastSeen: time.UnixMilli(int64(z.Score))})
	}
	return slices.Clip(left)
}
