package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// drains marks a verb that hands over to others on SIGTERM, then ends.
type drains interface{ drains() }

func (*sfuCommand) drains()       {}
func (*signalingCommand) drains() {}

// untilSignalled ends ctx by SIGINT, and by SIGTERM unless the verb drains: that gets each SIGTERM from terminate.
// After ctx has ended, a signal ends the process.
func untilSignalled(ctx context.Context, draining bool) (_ context.Context, terminate <-chan os.Signal, stop func()) {
	if !draining {
		ctx, stop = signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
		context.AfterFunc(ctx, stop)
		return ctx, nil, stop
	}
	ctx, ignoreInterrupts := signal.NotifyContext(ctx, os.Interrupt)
	terminations := make(chan os.Signal, 2)
	signal.Notify(terminations, syscall.SIGTERM)
	stop = func() {
		ignoreInterrupts()
		signal.Stop(terminations)
	}
	context.AfterFunc(ctx, stop)
	return ctx, terminations, stop
}
