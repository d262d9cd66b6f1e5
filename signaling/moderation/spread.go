package moderation

import (
	"context"
	"errors"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/orchestrator"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/signaling/sfulink"
)

// Spread is what became of an order to spread or gather a room.
type Spread struct {
	Room     ring.RoomID   `json:"room"`
	Owner    ring.NodeID   `json:"owner"`
	Branches []ring.NodeID `json:"branches"`
}

// SpreadError says why a room's owner does not do what it was ordered.
type SpreadError struct {
	Owner ring.NodeID
	Why   string
}

func (e *SpreadError) Error() string {
	return "the room stays on " + string(e.Owner) + " as it is: " + e.Why
}

// Spread has the room's owner appoint the named media node, or one of the owner's choice, to carry some of the room's people. It returns once
// the owner has decided; people move after that. Errors: orchestrator.ErrNoPin, sfulink.ErrUnreachable, *orchestrator.TargetError, *SpreadError.
func (m *Moderation) Spread(ctx context.Context, room ring.RoomID, to ring.NodeID) (Spread, error) {
	if _, lives := m.deps.Views.View().Nodes[to]; to != "" && !lives {
		return Spread{}, &orchestrator.TargetError{Node: to, Why: "no media node of this name lives"}
	}
	return m.orderSpread(ctx, &control.SpreadRequest{Room: string(room), Place: m.placeOf(to), Why: pin.WhyOperator})
}

// Gather has the owner end the room's branch at the named node, or all of the room's branches, and take their people. Errors are those of Spread.
func (m *Moderation) Gather(ctx context.Context, room ring.RoomID, from ring.NodeID) (Spread, error) {
	return m.orderSpread(ctx, &control.SpreadRequest{Room: string(room), Place: m.placeOf(from), Gather: true, Why: pin.WhyOperator})
}

// placeOf is nil for no node. A node that does not live any more has a name only.
func (m *Moderation) placeOf(node ring.NodeID) *control.Place {
	if node == "" {
		return nil
	}
	lives := m.deps.Views.View().Nodes[node]
	return &control.Place{Node: string(node), Boot: string(lives.Boot), Control: lives.Control}
}

func (m *Moderation) orderSpread(ctx context.Context, request *control.SpreadRequest) (Spread, error) {
	room := ring.RoomID(request.GetRoom())
	at, err := m.Pin(ctx, room)
	if err != nil {
		return Spread{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, movePatience)
	defer cancel()
	client, err := m.deps.Pool.Client(at.Control)
	if err != nil {
		return Spread{}, errors.Join(sfulink.ErrUnreachable, err)
	}
	reply, err := client.Spread(ctx, request)
	switch {
	case control.WhyNotSpread(err) != "":
		return Spread{}, &SpreadError{Owner: at.Node, Why: control.WhyNotSpread(err)}
	case control.IsNotOpen(err), err == nil && !reply.GetHeld():
		return Spread{}, orchestrator.ErrNoPin
	case err != nil:
		return Spread{}, errors.Join(sfulink.ErrUnreachable, err)
	}
	answer := Spread{Room: room, Owner: at.Node, Branches: []ring.NodeID{}}
	for _, b := range reply.GetBranches() {
		answer.Branches = append(answer.Branches, ring.NodeID(b.GetPlace().GetNode()))
	}
	m.deps.Log.Info("room spread or gathered by an operator", "room", room, "owner", at.Node, "gather", request.GetGather(), "node", request.GetPlace().GetNode(),
		"branches", len(answer.Branches))
	return answer, nil
}
