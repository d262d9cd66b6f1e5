package chaos

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// returnLimit bounds how long a returned node may be passed over: signaling nodes hear of it one by one.
const returnLimit = 10 * time.Second

// sendPeople opens rooms on returned, empty nodes.
func (c *Chaos) sendPeople(ctx context.Context, w *World) error {
	w.Late = w.After
	var failure error
	_ = poll(ctx, returnLimit, func() error { // the verdict tells what is missing
		if failure = c.crowd.spread(ctx, w.Late); failure != nil {
			return nil
		}
		_ = c.settled(ctx, &World{}, time.Now()) // as above
		w.Late = c.look(ctx)
		if empty := w.emptyAgain(); len(empty) > 0 {
			return fmt.Errorf("%v took no room", empty)
		}
		return nil
	})
	return failure
}

func (w *World) emptyAgain() []string {
	return slices.DeleteFunc(w.struckSFU(), func(node string) bool {
		return slices.ContainsFunc(w.Late.Held, func(h Held) bool { return h.Node == node })
	})
}

// BackInService checks the rooms of the nodes that were cut off.
func BackInService(w *World) Verdict {
	v := verdict("back in service", "a media node that was cut off takes new rooms when it can be reached again")
	for _, node := range w.emptyAgain() {
		v.broken("%s has no room, though people were sent there", node)
	}
	if w.Late.NodesUnknown != "" {
		return v.unchecked("%s", w.Late.NodesUnknown)
	}
	return *v
}
