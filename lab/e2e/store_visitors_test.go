package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
	"github.com/holdfast-rtc/holdfast/lab/peer"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// joinAs joins a room over a socket of its own, without media. A refusal is a *peer.RefusedError.
func joinAs(ctx context.Context, c *devcluster.Cluster, room, name string) (*websocket.Conn, wire.Placement, error) {
	token, err := c.Token(room, name)
	if err != nil {
		return nil, wire.Placement{}, err
	}
	socket, _, err := websocket.Dial(ctx, c.URL()+"ws", &websocket.DialOptions{Subprotocols: []string{wire.Subprotocol}}) //nolint:bodyclose // The library documents that there is none to close.
	if err != nil {
		return nil, wire.Placement{}, fmt.Errorf("dial: %w", err)
	}
	socket.SetReadLimit(1 << 20) // The roster of a full room does not fit the default.
	answer, err := exchange(ctx, socket, &wire.Join{Token: token, Room: room})
	if err != nil {
		_ = socket.CloseNow()
		return nil, wire.Placement{}, err
	}
	switch m := answer.(type) {
	case *wire.Joined:
		return socket, m.Placement, nil
	case *wire.Error:
		err = refusalOf(m)
	default:
		err = fmt.Errorf("the answer is %s", wire.TypeOf(m))
	}
	_ = socket.CloseNow()
	return nil, wire.Placement{}, err
}

func exchange(ctx context.Context, socket *websocket.Conn, message wire.Message) (wire.Message, error) {
	frame, err := wire.Encode(message)
	if err != nil {
		return nil, err
	}
	if err := socket.Write(ctx, websocket.MessageText, frame); err != nil {
		return nil, fmt.Errorf("write: %w", err)
	}
	_, answer, err := socket.Read(ctx)
	if err != nil {
		return nil, fmt.Errorf("read: %w", err)
	}
	return wire.DecodeServer(answer)
}

// goodbye leaves, so that the room does not fill with people in their grace time.
func goodbye(socket *websocket.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	_, err := exchange(ctx, socket, &wire.Leave{})
	for err == nil { // until the server has closed it
		_, _, err = socket.Read(ctx)
	}
	_ = socket.CloseNow()
}

type visit struct {
	room         string
	began, ended time.Time // of the join
	at           wire.Placement
	err          error
}

// code is why the visit was refused; empty if it was not, or not by a code.
func (v visit) code() wire.Code {
	if refused, ok := errors.AsType[*peer.RefusedError](v.err); ok {
		return refused.Code
	}
	return ""
}

type visitors struct {
	all  sync.WaitGroup
	stop context.CancelFunc

	mu     sync.Mutex // guards visits
	visits []visit
}

// send lets visitors come, each to the room that rooms says, until end is called.
func send(t *testing.T, c *devcluster.Cluster, perSecond int, rooms func(i int) string) *visitors {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	v := &visitors{stop: cancel}
	t.Cleanup(v.end)
	v.all.Go(func() {
		tick := time.NewTicker(time.Second / time.Duration(perSecond))
		defer tick.Stop()
		for i := 0; ; i++ {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			v.all.Go(func() { v.comes(ctx, c, rooms(i), fmt.Sprintf("visitor-%d", i)) })
		}
	})
	return v
}

func (v *visitors) comes(ctx context.Context, c *devcluster.Cluster, room, name string) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	one := visit{room: room, began: time.Now()}
	var socket *websocket.Conn
	socket, one.at, one.err = joinAs(ctx, c, room, name)
	one.ended = time.Now()
	if ctx.Err() == nil {
		v.mu.Lock()
		v.visits = append(v.visits, one)
		v.mu.Unlock()
	}
	if socket != nil {
		goodbye(socket)
	}
}

func (v *visitors) end() {
	v.stop()
	v.all.Wait()
}

func (v *visitors) those(of func(visit) bool) []visit {
	v.mu.Lock()
	defer v.mu.Unlock()
	var some []visit
	for _, one := range v.visits {
		if of(one) {
			some = append(some, one)
		}
	}
	return some
}

func (v *visitors) waitFor(t *testing.T, limit time.Duration, n int, what string, of func(visit) bool) {
	t.Helper()
	before := len(v.those(of))
	eventually(t, limit, what, func() error {
		if now := len(v.those(of)); now < before+n {
			return fmt.Errorf("%d of %d; %s", now-before, n, v.summary())
		}
		return nil
	})
}

func (v *visitors) summary() string {
	in, refused := 0, make(map[string]int)
	for _, one := range v.those(everyVisit) {
		switch {
		case one.err == nil:
			in++
		case one.code() != "":
			refused[string(one.code())]++
		default:
			refused[one.err.Error()]++
		}
	}
	return fmt.Sprintf("%d visits in, refused %v", in, refused)
}

func everyVisit(visit) bool { return true }

func succeeded(v visit) bool { return v.err == nil }

func toNew(v visit) bool { return strings.HasPrefix(v.room, "new-") }

// both is a visit of two kinds.
func both(one, other func(visit) bool) func(visit) bool {
	return func(v visit) bool { return one(v) && other(v) }
}

func within(from, to time.Time) func(visit) bool {
	return func(v visit) bool { return v.began.After(from) && v.ended.Before(to) }
}

// keptAndNew are the rooms of calls in turn and, every tenth time, a new one.
func keptAndNew(calls []*people, prefix string) func(i int) string {
	return func(i int) string {
		if i%10 == 1 {
			return fmt.Sprintf("%s-%d", prefix, i)
		}
		return calls[i%len(calls)].room
	}
}

func refusedForTheStore(v visit) bool { return v.code() == wire.CodeStoreUnavailable }

// onlyNewRoomsWereRefused fails if anybody could not join a room that was known, or was refused for another reason than
// the store.
func onlyNewRoomsWereRefused(t *testing.T, visits *visitors) {
	t.Helper()
	for _, v := range visits.those(func(v visit) bool { return v.err != nil }) {
		if !toNew(v) || !refusedForTheStore(v) {
			t.Errorf("a visitor of %s: %v", v.room, v.err)
		}
	}
}

// laterError is a refusal because of the store, and when to ask again.
type laterError struct {
	*peer.RefusedError

	after time.Duration
}

func (l *laterError) Unwrap() error { return l.RefusedError }

// refusalOf is what an error of the server means for who joins.
func refusalOf(m *wire.Error) error {
	refused := &peer.RefusedError{Code: m.Code, Message: m.Message}
	if m.Code != wire.CodeStoreUnavailable {
		return refused
	}
	return &laterError{refused, time.Duration(m.RetryAfterMs) * time.Millisecond}
}
