package node

import (
	"context"
	"log/slog"
	"os"
	"time"
)

// untilLeft gives a context that ends when SIGTERM has come and leave has returned, which gets the timeout, or at once by a second SIGTERM.
func untilLeft(ctx context.Context, terminate <-chan os.Signal, timeout time.Duration, leave func(context.Context), log *slog.Logger) (context.Context, func()) {
	ctx, end := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-ctx.Done():
			return
		case <-terminate:
		}
		defer end()
		limited, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		left := make(chan struct{})
		go func() {
			defer close(left)
			leave(limited)
		}()
		select {
		case <-left:
		case <-terminate:
			log.Warn("told to hurry: the clients that are left are sent away at once")
			cancel()
			<-left
		}
	}()
	return ctx, func() {
		end()
		<-done
	}
}
