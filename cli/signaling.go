package cli

import (
	"context"

	"github.com/holdfast-rtc/holdfast/node"
)

type signalingCommand struct {
	logFlags
	node.SignalingConfig
}

func (c *signalingCommand) Run(ctx context.Context, s streams) error {
	process, err := node.NewSignaling(c.SignalingConfig)
	if err != nil {
		return err
	}
	return process.Run(ctx, c.process(s, process.Name()))
}
