package node

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/redisstore"
	"github.com/holdfast-rtc/holdfast/ring"
)

// bootTimeout bounds how long a silent store holds a start up.
const bootTimeout = 2 * time.Second

// newBoot returns a boot id above every earlier one of this role and name in the store, and above former, the highest that another member
// knew, if there is one. While the store is silent the machine's clock has to do.
func newBoot(ctx context.Context, store *redisstore.Store, role cluster.Role, name ring.NodeID, former pin.BootID, log *slog.Logger) pin.BootID {
	now := time.Now()
	if began, ok := former.Began(); ok && !now.After(began) {
		now = began.Add(time.Millisecond)
	}
	ctx, cancel := context.WithTimeout(ctx, bootTimeout)
	defer cancel()
	began, err := store.BeginBoot(ctx, string(role)+"/"+string(name), now)
	if err != nil {
		log.Warn("boot id made without the store, from the machine's clock and what other members know", "error", err)
		began = now
	}
	return pin.NewBootID(began)
}

// aboveFormerLife runs a node, and once more when the cluster knows a newer boot of it. The second run takes a boot id above that one; if
// another process under this name has begun meanwhile, the second run is the older one, and waits.
func aboveFormerLife(log *slog.Logger, run func(former pin.BootID) error) error {
	err := run("")
	older, ok := errors.AsType[*cluster.OlderBootError](err)
	if !ok {
		return err
	}
	log.Warn("the clock was set back since a former life of this node: it begins anew with a higher boot id", "former_boot", older.Newer)
	return run(older.Newer)
}
