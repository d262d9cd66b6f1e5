package moderation

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

const (
	// AskPatience is how long a node may take to answer.
	AskPatience = 2 * time.Second
	asksAtOnce  = 32
)

var errBroke = errors.New("this signaling node broke while it read the reply")

// AskNodes asks every live media node, and also returns the nodes that did not answer within AskPatience.
func AskNodes[T any](ctx context.Context, m *Moderation, what string, ask func(context.Context, cluster.Node, control.MediaClient) ([]T, error)) (answers []T, unreachable []ring.NodeID) {
	return askEach(ctx, m, what, slices.Collect(maps.Values(m.deps.Views.View().Nodes)), func(ctx context.Context, n cluster.Node) ([]T, error) {
		client, err := m.deps.Pool.Client(n.Control)
		if err != nil {
			return nil, err
		}
		return ask(ctx, n, client)
	})
}

func askEach[T any](ctx context.Context, m *Moderation, what string, nodes []cluster.Node, ask func(context.Context, cluster.Node) ([]T, error)) (answers []T, unreachable []ring.NodeID) {
	answers, unreachable = []T{}, []ring.NodeID{} // not null in JSON
	var (
		mu   sync.Mutex
		asks errgroup.Group
	)
	asks.SetLimit(asksAtOnce)
	for _, n := range nodes {
		asks.Go(func() error {
			limited, cancel := context.WithTimeout(ctx, AskPatience)
			defer cancel()
			var some []T
			err := m.catch(func() (err error) {
				some, err = ask(limited, n)
				return err
			})
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				m.deps.Log.Debug("node not asked", "node", n.ID, "what", what, "error", err)
				unreachable = append(unreachable, n.ID)
			}
			answers = append(answers, some...)
			return nil
		})
	}
	_ = asks.Wait()
	slices.Sort(unreachable)
	return answers, unreachable
}

// catch runs ask and turns a panic of it into an error.
func (m *Moderation) catch(ask func() error) (err error) {
	if m.deps.Panics.Catch(m.deps.Log, "a media node's reply broke its reading", func() { err = ask() }) {
		return errBroke
	}
	return err
}

// StayingRoom is a room that cannot leave a draining node, and why.
type StayingRoom struct {
	Room   ring.RoomID `json:"room"`
	Reason string      `json:"reason"`
}

// Staying lists the rooms that cannot leave a draining node, by the clients of this signaling node and of the others. It also returns the
// signaling nodes that did not answer.
func (m *Moderation) Staying(ctx context.Context, boot pin.BootID) ([]StayingRoom, []ring.NodeID) {
	var others []cluster.Node
	for _, n := range m.deps.Views.View().Signaling {
		if n.ID != m.deps.Self {
			others = append(others, n)
		}
	}
	list, unreachable := askEach(ctx, m, "staying", others, func(ctx context.Context, n cluster.Node) (rows []StayingRoom, err error) {
		client, err := m.deps.Pool.Moves(n.Control)
		if err != nil {
			return nil, err
		}
		reply, err := client.Staying(ctx, &control.StayingRequest{Boot: string(boot)})
		for _, r := range reply.GetRooms() {
			rows = append(rows, StayingRoom{Room: ring.RoomID(r.GetRoom()), Reason: r.GetReason()})
		}
		return rows, err
	})
	// JSON has an empty list, not null.
	here := []StayingRoom{}
	for room, why := range m.deps.Rooms.Staying(boot) {
		here = append(here, StayingRoom{Room: room, Reason: why})
	}
	list = append(here, list...)
	slices.SortStableFunc(list, func(a, b StayingRoom) int { return cmp.Compare(a.Room, b.Room) })
	return slices.CompactFunc(list, func(a, b StayingRoom) bool { return a.Room == b.Room }), unreachable
}
