package node

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/panics"
	"github.com/holdfast-rtc/holdfast/sfu"
)

// TestSIGTERMAfterAnUndrainDrains: only a second SIGTERM within one drain hurries the node.
func TestSIGTERMAfterAnUndrainDrains(t *testing.T) {
	for name, between := range map[string]func(*sfu.Node){
		"undrained":                   func(*sfu.Node) {},
		"undrained and drained again": func(n *sfu.Node) { n.StartDrain(sfu.Drain{}) },
	} {
		t.Run(name, func(t *testing.T) {
			cfg := sfu.DefaultConfig()
			cfg.Node, cfg.Boot, cfg.Loopback = "one", "1769000000000-one", true
			log := slog.New(slog.DiscardHandler)
			node, err := sfu.New(cfg, nil, log)
			if err != nil {
				t.Fatal(err)
			}
			var ended sync.WaitGroup
			ended.Go(func() { _ = node.Run(t.Context()) })
			t.Cleanup(ended.Wait)

			d, leaves := &sfuDrain{media: node, log: log}, 0
			leave := func() { leaves++ }
			d.terminate(leave)
			node.Undrain()
			between(node)
			d.terminate(leave)
			if now := node.DrainState(); leaves != 0 || !now.Draining || !now.Exit {
				t.Fatalf("the first SIGTERM of the second drain: %d leaves, %+v", leaves, now)
			}
			d.terminate(leave)
			if leaves != 1 {
				t.Errorf("the second SIGTERM: %d leaves, want 1", leaves)
			}
		})
	}
}

// fullMedia is a media node with one room that nobody takes.
type fullMedia struct {
	mu    sync.Mutex
	state sfu.DrainState
	until time.Time
}

func (m *fullMedia) StartDrain(d sfu.Drain) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.state = sfu.DrainState{Draining: true, Exit: d.Exit, Began: time.Now(), Rooms: 1, Open: 1, Peers: 2}
	m.until = time.Now().Add(20 * time.Second)
}

func (m *fullMedia) DrainState() sfu.DrainState {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.state
	now.Overdue = now.Draining && !time.Now().Before(m.until)
	return now
}

func (*fullMedia) DrainChanged() <-chan struct{} { return nil }
func (*fullMedia) Panics() *panics.Guard         { return panics.New() }

// TestADrainDoesNotOutwaitASilentStore: a node whose rooms cannot move because the store is silent says so, and after SIGTERM ends
// within the 10 s that --drain-timeout promises. A drain that an operator asked for waits, as does one that lacks headroom only.
func TestADrainDoesNotOutwaitASilentStore(t *testing.T) {
	silent := errors.New("i/o timeout")
	for name, row := range map[string]struct {
		store      error
		byOperator bool
		want       error // of the process; nil: the node waits on
	}{
		"silent":                       {silent, false, errStoreAway},
		"silent, an operator's drain":  {silent, true, nil},
		"it answers, others lack room": {nil, false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var said strings.Builder
				media := &fullMedia{}
				d := &sfuDrain{
					media: media, log: slog.New(slog.NewTextHandler(&said, nil)), announce: func(bool, bool) {},
					askStore: func(context.Context) error { return row.store },
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				terminate, left := make(chan os.Signal, 1), make(chan struct{})
				if row.byOperator {
					media.StartDrain(sfu.Drain{Exit: true})
				} else {
					terminate <- syscall.SIGTERM
				}
				var running sync.WaitGroup
				running.Go(func() { _ = d.run(ctx, terminate, func() { close(left) }) })
				began, err := time.Now(), error(nil)
				select {
				case <-left:
					err = d.linger(ctx)
				case <-time.After(time.Hour):
				}
				took := time.Since(began)
				cancel()
				running.Wait()
				if !errors.Is(err, row.want) || row.want != nil && (took < 20*time.Second || took > 29*time.Second) {
					t.Errorf("ended after %v with %v, want %v within 29 s", took, err, row.want)
				}
				if warned := strings.Count(said.String(), "level=WARN msg=\"the store does not answer"); (warned == 1) != (row.store != nil) {
					t.Errorf("the silence of the store was said %d times:\n%s", warned, said.String())
				}
			})
		})
	}
}
