package load

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast-rtc/holdfast/lab/peer"
)

// Populate keeps people in rooms until ctx ends, whatever nodes die. It measures nothing. Its error names who was refused for good.
func Populate(ctx context.Context, o Options) error {
	if err := o.Validate(); err != nil {
		return err
	}
	stack, err := peer.NewStackOf(o.Video, o.Codec)
	if err != nil {
		return err
	}
	var living errgroup.Group
	for room := range o.Rooms {
		for i := range o.Peers {
			p, err := newPerson(o, stack, room, i)
			if err != nil {
				return err
			}
			living.Go(func() error {
				if err := p.peer.Run(ctx); err != nil {
					return fmt.Errorf("%s in %s: %w", p.name, p.room, err)
				}
				return nil
			})
		}
	}
	return living.Wait()
}
