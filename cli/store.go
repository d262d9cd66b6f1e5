//go:build !node

package cli

import (
	"context"

	"github.com/holdfast-rtc/holdfast/internal/child"
	"github.com/holdfast-rtc/holdfast/lab/devcluster"
	"github.com/holdfast-rtc/holdfast/node"
)

type storeCommand struct {
	logFlags
	Name   string `default:"store" help:"The name in the log."`
	Listen string `default:"127.0.0.1:6379" help:"host:port of the store."`
}

func (c *storeCommand) Run(ctx context.Context, s streams) error {
	if err := node.Faults(node.CheckHostPort("listen", c.Listen)); err != nil {
		return err
	}
	announce := lifeline(s)
	store, err := devcluster.OpenStore(c.Listen)
	if err != nil {
		return err
	}
	c.logger(s.err, c.Name).Info("store is up", "listen", store.Address())
	if err := announce(map[string]string{child.AddressStore: store.Address()}); err != nil {
		return err
	}
	return store.Run(ctx)
}
