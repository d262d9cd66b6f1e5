//go:build !node

package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-rtc/holdfast/lab/hosts"
)

// cableCommand slows a host whose virtual cable ends at a bridge of this machine, as a container's does. It is for
// lab/chaos/scripts.
type cableCommand struct {
	Port  string        `arg:"" help:"The cable's end at the bridge."`
	Delay time.Duration `default:"200ms" help:"How late each packet gets, each way."`
}

// Run does it until ctx ends.
func (c *cableCommand) Run(ctx context.Context, s streams) error {
	frames, err := hosts.Relay(ctx, c.Port, c.Delay)
	if err != nil {
		return err
	}
	fmt.Fprintf(s.out, "%d packets were late\n", frames)
	return nil
}
