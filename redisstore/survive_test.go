package redisstore

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-rtc/holdfast/internal/panics"
	"github.com/holdfast-rtc/holdfast/internal/testkit"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/redisstore/storetest"
	"github.com/holdfast-rtc/holdfast/ring"
)

// mine makes the client panic where it reads the reply of one command.
type mine struct {
	mu      sync.Mutex // guards command
	command string
}

func (m *mine) arm(command string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.command = command
}

func (m *mine) step(cmds ...redis.Cmder) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, cmd := range cmds {
		if cmd.Name() == m.command {
			panic("of a test")
		}
	}
}

func (m *mine) DialHook(next redis.DialHook) redis.DialHook { return next }

func (m *mine) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		m.step(cmd)
		return next(ctx, cmd)
	}
}

func (m *mine) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		m.step(cmds...)
		return next(ctx, cmds)
	}
}

// TestRepliesThatBreakTheirReadingCostTheirCallers: nobody waits for ever, no pipeline is lost, and Run goes on.
func TestRepliesThatBreakTheirReadingCostTheirCallers(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, server storetest.Server) {
		guard, broken := panics.New(), &mine{}
		store, err := OpenAs(patient(server).URL, pin.DefaultCluster, guard, testkit.Quiet())
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := store.Incarnations(ctx); err != nil {
			t.Fatal(err)
		}
		for _, m := range store.masters.all() {
			m.client.AddHook(broken)
		}
		at := storetest.At("a", 1000, 1)
		broken.arm("set")
		var all sync.WaitGroup
		for range 50 { // more than there are pipelines
			all.Go(func() {
				if _, _, err := store.Claim(ctx, "r", at, ""); !errors.Is(err, errBroke) {
					t.Errorf("a claim that breaks ends with %v", err)
				}
			})
		}
		all.Wait()
		broken.arm("")
		for room := range ring.RoomID("abcdefgh") {
			if got, _, err := store.Claim(ctx, ring.RoomID(rune('a'+room)), at, ""); err != nil || got != at {
				t.Errorf("Claim = %v, %v afterwards", got, err)
			}
		}
		running, stop := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() { ended <- store.Run(running) }()
		broken.arm("time")
		before := guard.Count()
		testkit.Eventually(t, "two rounds of pings to break", func() bool { return guard.Count() >= before+2 })
		stop()
		if err := <-ended; err != nil {
			t.Errorf("Run = %v", err)
		}
	})
}
