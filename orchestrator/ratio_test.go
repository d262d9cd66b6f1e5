package orchestrator

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/redisstore/storetest"
	"github.com/holdfast-rtc/holdfast/ring"
)

// BenchmarkPlaceAgainstTheBareCommand compares, on one redis-server, placements of new rooms with the bare command by
// the same client, with its automatic pipelining, and by redis-benchmark. Placements share round trips, so the second
// is the fair one. The turns alternate.
func BenchmarkPlaceAgainstTheBareCommand(b *testing.B) {
	const turns, turn = 4, 200 * time.Millisecond
	for _, callers := range []int{1, 16, 64} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			server := storetest.Start(b, "redis")
			store := onRedis(b, server)
			signaling := New(store, fixed(settledBench(b, store)), &addresses{}, patient(), quiet)
			bare := storetest.NewBare(b, server, callers)
			together := storetest.NewBareBatched(b, server, callers)
			value := pinAt("sfu-1", 1, 1_700_000_000_000, 1).Encode()
			var place, command, batched, program float64
			var n int64
			for b.Loop() {
				for range turns {
					place += rate(b, callers, turn, func(ctx context.Context, i int64) error {
						_, err := signaling.Place(ctx, ring.RoomID(fmt.Sprintf("room-%d-%d", n, i)), headroom.Room{})
						return err
					})
					n++
					command += rate(b, callers, turn, func(ctx context.Context, i int64) error {
						return bare.Claim(ctx, fmt.Sprintf("room:{bare-%d-%d}:node", n, i), value)
					})
					batched += rate(b, callers, turn, func(ctx context.Context, i int64) error {
						return together.Claim(ctx, fmt.Sprintf("room:{batched-%d-%d}:node", n, i), value)
					})
					program += storetest.BenchmarkServer(b, server, callers, int(command/float64(turns)*turn.Seconds())+1000, value)
				}
			}
			rounds := float64(turns * b.N)
			b.ReportMetric(place/rounds, "place/s")
			b.ReportMetric(command/rounds, "command/s")
			b.ReportMetric(batched/rounds, "batched/s")
			b.ReportMetric(program/rounds, "redis-benchmark/s")
			b.ReportMetric(place/command, "place:command")
			b.ReportMetric(place/batched, "place:batched")
			b.ReportMetric(place/max(program, 1), "place:redis-benchmark")
		})
	}
}

// rate is calls a second.
func rate(b *testing.B, callers int, during time.Duration, call func(context.Context, int64) error) float64 {
	b.Helper()
	var all sync.WaitGroup
	var next, done atomic.Int64
	began := time.Now()
	for range callers {
		all.Go(func() {
			for time.Since(began) < during {
				if err := call(b.Context(), next.Add(1)); err != nil {
					b.Error(err)
					return
				}
				done.Add(1)
			}
		})
	}
	all.Wait()
	return float64(done.Load()) / time.Since(began).Seconds()
}
