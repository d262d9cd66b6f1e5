//go:build !node

package cli

import (
	"context"
	"net/http"
	"time"

	"github.com/holdfast-rtc/holdfast/top"
)

type topCommand struct {
	serverFlags
	Every time.Duration `default:"1s" help:"How often it asks; 100ms to 1m."`
}

// Run shows the cluster until it is interrupted.
func (c *topCommand) Run(ctx context.Context, s streams) error {
	return top.Run(ctx, top.Options{
		Ask: func(ctx context.Context, path string) ([]byte, error) { return c.send(ctx, http.MethodGet, path) },
		In:  s.in, Out: s.out, Every: min(c.Every, time.Minute), JSON: c.JSON,
	})
}
