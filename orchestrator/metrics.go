package orchestrator

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/metrics"
	"github.com/holdfast-rtc/holdfast/people/waitlist"
	"github.com/holdfast-rtc/holdfast/pin"
)

// The causes of a re-homing, for the metrics.
const (
	causeDead     = "node_dead"
	causeLeft     = "node_left"
	causeReplaced = "node_restarted"
	causeDrain    = "drain"
	causeRefused  = "node_refused"
	causeOwner    = "owner_elsewhere"
	causeLost     = "write_lost"
	causeDamaged  = "pin_damaged"
	causeRelief   = "relief"
	causeSilent   = "node_silent"
	causeOperator = "operator"
	causeOther    = "other"
)

// The reasons why a placement fails, for the metrics.
const (
	reasonNotSettled = "not_settled"
	reasonNoNodes    = "no_nodes"
	reasonNoHeadroom = "no_headroom"
	reasonStore      = "store_unavailable"
	reasonContended  = "contended"
	reasonTarget     = "target_refused"
	reasonCancelled  = "cancelled"
)

// NewMetrics registers what an orchestrator counts, in the nouns of this package.
func NewMetrics(r *metrics.Registry) *metrics.Placement {
	return r.NewPlacement(
		[]string{reasonNotSettled, reasonNoNodes, reasonNoHeadroom, reasonStore, reasonContended, reasonTarget, reasonCancelled, causeOther},
		[]string{causeDead, causeLeft, causeReplaced, causeDrain, causeRefused, causeOwner, causeLost, causeDamaged, causeOther},
		[]string{causeDrain, causeRelief, causeSilent, causeOperator, causeOther},
	)
}

// causeOf classifies the reason of a new pin, which is for people and may go on with what was passed over.
func causeOf(why string) string {
	for _, row := range []struct{ begins, cause string }{
		{"its process is gone: left", causeLeft},
		{"its process is gone: ", causeDead},
		{"the caller knows that its process is dead", causeDead},
		{"its process was taken for dead", causeDead},
		{"nobody listens at its address", causeDead},
		{"gossip does not know its process", causeDead},
		{"a newer process has its name", causeReplaced},
		{"another process lives at its address", causeReplaced},
		{pin.WhyDrain, causeDrain},
		{pin.WhySilent, causeSilent},
		{whyRefused, causeRefused},
		{whyOwner, causeOwner},
		{whyLost, causeLost},
		{"a higher pin was seen", causeLost},
		{pin.WhyDamaged, causeDamaged},
		{pin.WhyOperator, causeOperator},
		{"relief", causeRelief},
	} {
		if strings.HasPrefix(why, row.begins) {
			return row.cause
		}
	}
	return causeOther
}

// reasonOf classifies the error of a placement.
func reasonOf(err error) string {
	if _, full := errors.AsType[*NoHeadroomError](err); full {
		return reasonNoHeadroom
	}
	if _, named := errors.AsType[*TargetError](err); named {
		return reasonTarget
	}
	for _, row := range []struct {
		err    error
		reason string
	}{
		{ErrNotSettled, reasonNotSettled},
		{ErrNoNodes, reasonNoNodes},
		{ErrStoreUnavailable, reasonStore},
		{pin.ErrLater, reasonStore},
		{ErrContended, reasonContended},
		{context.Canceled, reasonCancelled},
		{context.DeadlineExceeded, reasonCancelled},
	} {
		if errors.Is(err, row.err) {
			return row.reason
		}
	}
	return causeOther
}

// raceWithin is by how many milliseconds the winner's claim may be older than a lost one to count as one of the same moment. It is some
// round trips to the store: a person who comes later finds the room.
const raceWithin = 50

// counted tells the metrics how a placement ended.
func (o *Orchestrator) counted(r *request, began time.Time, p pin.Pin, err error) {
	took := o.cfg.Clock().Sub(began)
	_, waits := errors.AsType[*waitlist.WaitError](err)
	switch {
	case err != nil && !waits && !errors.Is(err, waitlist.ErrDoor):
		o.cfg.Metrics.Failed(reasonOf(err))
		o.cfg.Metrics.Placed(metrics.PlacementFailed, took)
	case r.claimed == p.Fence && !p.IsZero():
		o.cfg.Metrics.Placed(metrics.PlacementClaimed, took)
	case p.Fence.Fresh() && !r.claimed.IsZero() && p.Fence.Epoch+raceWithin > r.claimed.Epoch:
		o.cfg.Metrics.Placed(metrics.PlacementLost, took)
	default:
		o.cfg.Metrics.Placed(metrics.PlacementFound, took)
	}
}
