package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
	"github.com/holdfast-rtc/holdfast/lab/peer"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// waiter wants into a new room and asks again when told, as a client does.
type waiter struct {
	room string

	mu      sync.Mutex // guards the fields below
	refused int
	in      time.Time // zero while outside
	err     error     // another refusal than the store's
}

func waitAll(t *testing.T, c *devcluster.Cluster, prefix string, n int) []*waiter {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	t.Cleanup(func() { cancel(); all.Wait() })
	var list []*waiter
	for i := range n {
		w := &waiter{room: fmt.Sprintf("%s-%d", prefix, i)}
		list = append(list, w)
		all.Go(func() { w.wait(ctx, c) })
	}
	return list
}

func (w *waiter) wait(ctx context.Context, c *devcluster.Cluster) {
	for {
		socket, _, err := joinAs(ctx, c, w.room, "waits")
		if err == nil {
			w.mu.Lock()
			w.in = time.Now()
			w.mu.Unlock()
			<-ctx.Done()
			_ = socket.CloseNow()
			return
		}
		later, again := errors.AsType[*laterError](err)
		w.mu.Lock()
		if w.refused++; !again && ctx.Err() == nil {
			w.err = err
		}
		w.mu.Unlock()
		if !again {
			return
		}
		pause := time.NewTimer(later.after)
		select {
		case <-ctx.Done():
			pause.Stop()
			return
		case <-pause.C:
		}
	}
}

func (w *waiter) state() (refused int, in time.Time, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.refused, w.in, w.err
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

// refusedAgain waits until each of these has been refused some times, and nobody is in.
func refusedAgain(t *testing.T, times int, list []*waiter) {
	t.Helper()
	eventually(t, 30*time.Second, "those who want new rooms are refused for now, again and again", func() error {
		for _, w := range list {
			if refused, in, err := w.state(); refused < times || !in.IsZero() || err != nil {
				return fmt.Errorf("%s: refused %d times, in: %t, %w", w.room, refused, !in.IsZero(), err)
			}
		}
		return nil
	})
}

func allIn(t *testing.T, list []*waiter) []time.Time {
	t.Helper()
	var at []time.Time
	eventually(t, 30*time.Second, "those who wait get in", func() error {
		at = nil
		for _, w := range list {
			_, in, err := w.state()
			if in.IsZero() {
				return fmt.Errorf("%s: %w", w.room, err)
			}
			at = append(at, in)
		}
		return nil
	})
	return at
}

// waitInPage lets the client library of a page wait for a new room, as a second session in it.
func waitInPage(t *testing.T, p *participant, c *devcluster.Cluster, room string) {
	t.Helper()
	token, err := c.Token(room, "library")
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(map[string]string{"token": token, "room": room})
	if err != nil {
		t.Fatal(err)
	}
	p.mustEval(t, `(async () => {
	  const { Session } = await import('/holdfast/session.js');
	  const { socketUrl } = await import('/holdfast/address.js');
	  const session = new Session({ url: socketUrl(location.href), ...`+string(text)+` }, () => ({ epoch: 0, seq: 0 }));
	  const waits = globalThis.__waits = { refused: 0, in: 0, ended: '', session };
	  session.addEventListener('error', () => waits.refused++);
	  session.addEventListener('joined', () => { waits.in = Date.now(); session.leave(); });
	  session.addEventListener('ended', (event) => { waits.ended = event.detail.code; });
	  session.start();
	})()`, nil)
}

// waitedInPage is how often the library was refused, and when it was in.
func waitedInPage(t *testing.T, p *participant) (refused int, in time.Time) {
	t.Helper()
	var got struct {
		Refused int
		In      int64
		Ended   string
	}
	p.mustEval(t, "(({ refused, in: at, ended }) => ({ refused, in: at, ended }))(globalThis.__waits)", &got)
	if got.Ended != "" {
		t.Fatalf("the library gave up: %s", got.Ended)
	}
	if got.In != 0 {
		in = time.UnixMilli(got.In)
	}
	return got.Refused, in
}

// firstIn tries new rooms of a round until the first join succeeds.
func firstIn(t *testing.T, c *devcluster.Cluster, round int) time.Time {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	every := time.NewTicker(50 * time.Millisecond)
	defer every.Stop()
	for i := 0; ; i++ {
		socket, _, err := joinAs(ctx, c, fmt.Sprintf("first-%d-%d", round, i), fmt.Sprintf("eager-%d", i))
		if err == nil {
			at := time.Now()
			stays(t, socket)
			return at
		}
		if ctx.Err() != nil {
			t.Fatalf("no join in 30 s: %v", err)
		}
		<-every.C
	}
}

func stays(t *testing.T, socket *websocket.Conn) {
	t.Helper()
	t.Cleanup(func() { _ = socket.CloseNow() })
}
