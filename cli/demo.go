//go:build !node

package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
	"github.com/holdfast-rtc/holdfast/lab/load"
	"github.com/holdfast-rtc/holdfast/lab/peer"
	"github.com/holdfast-rtc/holdfast/lab/portrait"
)

// demoCommand is dev with people.
type demoCommand struct{ devUpCommand }

const demoPeople = 4

func (c *demoCommand) Run(ctx context.Context, s streams) error {
	if c.People == 0 {
		c.People = demoPeople
	}
	return c.devUpCommand.Run(ctx, s)
}

// populate keeps o.People in the demonstration's room until ctx ends.
func populate(ctx context.Context, page string, access devcluster.Access, people int, s streams) {
	keys, err := keysOf(access)
	if err == nil {
		err = load.Populate(ctx, load.Options{
			URL: "http://" + page, Room: devcluster.DemoRoom, Rooms: 1, Peers: people, JoinsPerSecond: 1000, Duration: time.Hour,
			Video: peer.VideoPortrait, Codec: portrait.VP8, Seed: seedOr(0), Keys: keys,
		})
	}
	if err != nil {
		fmt.Fprintf(s.err, "a drawn person has left: %v\n", err)
	}
}
