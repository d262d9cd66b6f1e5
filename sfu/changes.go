package sfu

import (
	"slices"
	"time"

	"github.com/holdfast-rtc/holdfast/control"
)

const (
	// A room of more people than these tells what changed at most once in gatherFor. A smaller one tells each change at once.
	gatherFrom = 100
	gatherFor  = 250 * time.Millisecond
)

// rosterChanges are the changes of the roster that have not been told, at most one for each peer, in the order in which they were made.
// The room's loop owns it.
type rosterChanges struct {
	untold []*control.RosterChange
	toldAt time.Time
	// planned says that the untold ones will be told.
	planned bool
}

// add takes in the latest change of a peer. One that joined and was not told of stays one that joined.
func (c *rosterChanges) add(change *control.RosterChange) {
	id := changedPeer(change)
	joined := false
	c.untold = slices.DeleteFunc(c.untold, func(former *control.RosterChange) bool {
		same := changedPeer(former) == id
		joined = joined || same && former.GetJoined() != nil
		return same
	})
	if updated := change.GetUpdated(); updated != nil && joined {
		change = &control.RosterChange{Change: &control.RosterChange_Joined{Joined: updated}}
	}
	c.untold = append(c.untold, change)
}

// due returns how long a room of so many people waits for further changes; zero or less: not at all.
func (c *rosterChanges) due(people int, now time.Time) time.Duration {
	if people <= gatherFrom {
		return 0
	}
	return gatherFor - now.Sub(c.toldAt)
}

// take returns the untold changes, encoded.
func (c *rosterChanges) take(now time.Time) ([]byte, error) {
	untold := c.untold
	c.untold, c.toldAt, c.planned = nil, now, false
	return control.EncodeRosterChanges(untold)
}

func changedPeer(change *control.RosterChange) string {
	switch {
	case change.GetJoined() != nil:
		return change.GetJoined().GetId()
	case change.GetUpdated() != nil:
		return change.GetUpdated().GetId()
	default:
		return change.GetLeft()
	}
}
