package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-rtc/holdfast/cluster"
)

// readyStoreLimit is how long one question waits for the store. It is below the patience of health checks, so that they hear the reason.
const readyStoreLimit = time.Second

var (
	errNoMember = errors.New("no other node has been met since the start: --join must name nodes that live, the gossip port must be open for TCP and UDP, " +
		"and all nodes need one cluster key and one --cluster")
	errDrains = errors.New("this node drains: it takes no rooms")
)

// sfuReadiness says whether a media node can be given rooms. An upgrade asks it before it goes on to the next node, so that a wrong key, wrong
// seeds or a wrong store stop the upgrade at the first one. Nothing ends a node or moves a room because the node is not ready.
type sfuReadiness struct {
	view     func() *cluster.View
	draining func() bool
	askStore func(ctx context.Context) error
}

// check returns nil if the node is ready, and else the reason in words. A node that has met another one once counts as a member from then on:
// the death of its only peer must not take it out of service. A node with --solo waits for nobody.
func (r sfuReadiness) check(ctx context.Context) error {
	if !r.view().Settled {
		return errNoMember
	}
	if r.draining() {
		return errDrains
	}
	ctx, cancel := context.WithTimeout(ctx, readyStoreLimit)
	defer cancel()
	if err := r.askStore(ctx); err != nil {
		return fmt.Errorf("the store does not answer, so no room can be opened here (is --store right, is Redis running?): %w", err)
	}
	return nil
}
