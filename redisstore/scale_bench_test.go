package redisstore

import (
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/redisstore/storetest"
	"github.com/holdfast-rtc/holdfast/ring"
)

// BenchmarkPins says what a hundred thousand rooms cost a Redis: when their owners refresh the pins, every 5 s, when a sweep visits
// all of them, and when they are claimed. server-us is processor time of the server for one pin, by INFO cpu.
func BenchmarkPins(b *testing.B) {
	const rooms = 100_000
	server := storetest.StartAlone(b).Server
	store := open(b, server)
	held := make([]pin.Holding, rooms)
	for i := range held {
		held[i] = pin.Holding{
			Room: ring.RoomID(fmt.Sprintf("a room of a usual name %d", i)),
			Pin:  pin.Pin{Fence: pin.Fence{Epoch: 1_800_000_000_000, Nonce: pin.NewNonce()}, Node: "sfu-1", Boot: "1800000000000-0badcafe", Control: "10.0.0.1:7000"},
		}
	}
	cost := func(name string, work func() error) {
		b.Run(name, func(b *testing.B) {
			before := cpuSeconds(b, server.Raw)
			for b.Loop() {
				if err := work(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(1e6*(cpuSeconds(b, server.Raw)-before)/float64(b.N)/rooms, "server-us/pin")
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/1e3/float64(b.N)/rooms, "us/pin")
		})
	}
	refresh := func(due bool) func() error {
		return func() error {
			_, err := store.Refresh(b.Context(), held, func(pin.Holding) bool { return due })
			return err
		}
	}
	if err := refresh(true)(); err != nil { // It writes what is missing.
		b.Fatal(err)
	}
	cost("refresh", refresh(false))
	cost("prolong", refresh(true))
	cost("sweep", func() error { return store.AllPins(b.Context(), func(pin.Holding) error { return nil }) })
	b.ReportMetric(0, "ns/op")
}

// cpuSeconds is what the server has used.
func cpuSeconds(b *testing.B, raw redis.UniversalClient) (sum float64) {
	b.Helper()
	info, err := raw.Info(b.Context(), "cpu").Result()
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(info) {
		var seconds float64
		for _, name := range []string{"used_cpu_user", "used_cpu_sys"} {
			if _, err := fmt.Sscanf(line, name+":%f", &seconds); err == nil {
				sum += seconds
			}
		}
	}
	return sum
}
