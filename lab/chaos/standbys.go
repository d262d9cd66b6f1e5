package chaos

import (
	"context"
	"fmt"
)

// awaitStandbys waits until a node stands by for everybody, as far as one can: a trial tells what is missing.
func (c *Chaos) awaitStandbys(ctx context.Context) error {
	if !c.options.Standby {
		return nil
	}
	return poll(ctx, c.options.patience.settle, func() error {
		if lacks := c.look(ctx).withoutStandby(); len(lacks) > 0 {
			return fmt.Errorf("no node stands by for everybody in %v", lacks)
		}
		return nil
	})
}

// withoutStandby lists the rooms in which somebody has no standby. A room on several nodes has none by rights.
func (l Look) withoutStandby() []string {
	var rooms []string
	for _, h := range l.Held {
		if len(h.Members) == 0 && h.Standby.Connections < len(h.Peers) {
			rooms = append(rooms, h.Room)
		}
	}
	return rooms
}
