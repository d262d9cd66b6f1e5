package transport

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pion/rtp"

	"github.com/holdfast-rtc/holdfast/internal/panics"
)

// ticked is a handler that notes its ticks.
type ticked struct{ at chan time.Time }

func (ticked) RTP(*rtp.Header, []byte, time.Time) {}
func (ticked) RTCP([]byte, time.Time)             {}
func (ticked) StateChanged(State)                 {}
func (ticked) Moved()                             {}
func (h ticked) Tick(now time.Time)               { h.at <- now }

// TestTicksComeWhenTheyAreDue: once each, the sooner of two, several of one moment together, and none for who is gone.
func TestTicksComeWhenTheyAreDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		transport := New(nil, panics.New(), slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { transport.clock.run(ctx); close(ended) }()
		open := func() (*Conn, chan time.Time) {
			at := make(chan time.Time, 10)
			return &Conn{transport: transport, cfg: Config{Handler: ticked{at: at}}}, at
		}
		a, ticksA := open()
		b, ticksB := open()
		gone, ticksGone := open()
		begun := time.Now()
		after := func(d time.Duration) time.Time { return begun.Add(d) }
		a.TickAt(after(50 * time.Millisecond))
		a.TickAt(after(20 * time.Millisecond))
		a.TickAt(after(30 * time.Millisecond))
		b.TickAt(after(21 * time.Millisecond))
		gone.TickAt(after(22 * time.Millisecond))
		transport.remove(gone, nil)
		expect := func(name string, ticks chan time.Time, d time.Duration) {
			t.Helper()
			select {
			case at := <-ticks:
				if !at.Equal(after(d)) {
					t.Errorf("%s ticked after %v, want %v", name, at.Sub(begun), d)
				}
			case <-time.After(time.Second):
				t.Errorf("%s did not tick", name)
			}
		}
		expect("a", ticksA, 20*time.Millisecond)
		expect("b", ticksB, 30*time.Millisecond) // With what falls due within 10 ms.
		<-time.After(time.Second)
		if len(ticksA)+len(ticksB)+len(ticksGone) != 0 {
			t.Errorf("%d, %d and %d more ticks that nobody asked for", len(ticksA), len(ticksB), len(ticksGone))
		}
		a.TickAt(after(1)) // It is past: at once.
		expect("a", ticksA, time.Since(begun))
		cancel()
		<-ended
	})
}
