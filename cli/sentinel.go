//go:build !node

package cli

import (
	"github.com/holdfast-rtc/holdfast/internal/child"
	"github.com/holdfast-rtc/holdfast/lab/devcluster"
	"github.com/holdfast-rtc/holdfast/node"
)

type sentinelCommand struct {
	logFlags
	Name   string `default:"sentinel-1" help:"The name of its configuration file."`
	Listen string `default:"127.0.0.1:26379" help:"host:port of the Sentinel."`
	Master string `default:"127.0.0.1:6379" help:"host:port of the store that it watches."`
	Dir    string `default:"." help:"Where its configuration is kept."`
}

func (c *sentinelCommand) Run(s streams) error {
	if err := node.Faults(node.CheckHostPort("listen", c.Listen), node.CheckHostPort("master", c.Master)); err != nil {
		return err
	}
	announce := lifeline(s)
	return devcluster.BecomeSentinel(c.Listen, c.Master, c.Dir, c.Name, func(address string) error {
		return announce(map[string]string{child.AddressSentinel: address})
	})
}
