package cli

import (
	"context"

	"github.com/holdfast-rtc/holdfast/node"
)

type sfuCommand struct {
	logFlags
	node.SFUConfig
}

func (c *sfuCommand) Run(ctx context.Context, s streams) error {
	process, err := node.NewSFU(c.SFUConfig)
	if err != nil {
		return err
	}
	return process.Run(ctx, c.process(s, process.Name()))
}
