package node

import (
	"context"
	"log/slog"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// TestUntilLeft: a SIGTERM ends the process when it has left, at the latest when the time is up; a second one at once.
func TestUntilLeft(t *testing.T) {
	for name, row := range map[string]struct {
		takes, second, want time.Duration
	}{
		"left":     {takes: 3 * time.Second, want: 3 * time.Second},
		"too slow": {takes: time.Hour, want: 20 * time.Second},
		"hurried":  {takes: time.Hour, second: 5 * time.Second, want: 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				terminate := make(chan os.Signal, 2)
				leave := func(ctx context.Context) {
					select {
					case <-time.After(row.takes):
					case <-ctx.Done():
					}
				}
				ctx, stop := untilLeft(t.Context(), terminate, 20*time.Second, leave, slog.New(slog.DiscardHandler))
				defer stop()
				synctest.Wait()
				if ctx.Err() != nil {
					t.Fatal("it ended before it was told to")
				}
				began := time.Now()
				terminate <- syscall.SIGTERM
				if row.second > 0 {
					time.AfterFunc(row.second, func() { terminate <- syscall.SIGTERM })
				}
				<-ctx.Done()
				if took := time.Since(began); took != row.want {
					t.Errorf("it ended after %v, want %v", took, row.want)
				}
			})
		})
	}
}
