package cli

import (
	"context"

	"github.com/holdfast-rtc/holdfast/node"
)

type balancerCommand struct {
	logFlags
	node.FrontConfig
}

func (c *balancerCommand) Run(ctx context.Context, s streams) error {
	front, err := node.NewFront(c.FrontConfig)
	if err != nil {
		return err
	}
	return front.Run(ctx, c.process(s, front.Name()))
}
