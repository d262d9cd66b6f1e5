package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
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
		socket, _, err := joinAs(ctx, c, w.room, w.room)
		later, again := errors.AsType[*laterError](err)
		w.mu.Lock()
		switch {
		case err == nil:
			w.in = time.Now()
		case again:
			w.refused++
		case ctx.Err() == nil:
			w.err = err
		}
		w.mu.Unlock()
		if err == nil {
			goodbye(socket)
		}
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

// all waits until each of the waiters is in, or has been refused some times and is not in.
func awaitWaiters(t *testing.T, list []*waiter, refusals int) (last time.Time) {
	t.Helper()
	eventually(t, 30*time.Second, "those who want new rooms are refused for now, or get in", func() error {
		for _, w := range list {
			w.mu.Lock()
			refused, in, err := w.refused, w.in, w.err
			w.mu.Unlock()
			if err != nil || in.IsZero() == (refusals == 0) || refused < refusals {
				return fmt.Errorf("%s: refused %d times, in: %t, %w", w.room, refused, !in.IsZero(), err)
			}
			if in.After(last) {
				last = in
			}
		}
		return nil
	})
	return last
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
	  const waits = globalThis.__waits = { refused: 0, in: 0, ended: '' };
	  session.addEventListener('error', () => waits.refused++);
	  session.addEventListener('joined', () => { waits.in = Date.now(); session.leave(); });
	  session.addEventListener('ended', (event) => { waits.ended = event.detail.code; });
	  session.start();
	})()`, nil)
}

// waitedInPage waits until the library has been refused some times and is not in, or, after no refusals, is in.
func waitedInPage(t *testing.T, p *participant, refusals int) (in time.Time) {
	t.Helper()
	eventually(t, 30*time.Second, "the library is refused for now, or gets in", func() error {
		var got struct {
			Refused int
			In      int64
			Ended   string
		}
		if err := p.eval("globalThis.__waits", &got); err != nil {
			return err
		}
		if got.Ended != "" || (got.In == 0) == (refusals == 0) || got.Refused < refusals {
			return fmt.Errorf("%+v", got)
		}
		in = time.UnixMilli(got.In)
		return nil
	})
	return in
}
