package nodelink

import (
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/people/messaging"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

// Bounds on what another node says, at or above those on what clients may send.
const (
	maxNameBytes = 1 << 10
	maxBodyBytes = 64 << 10
	maxMessages  = 64
	maxHolders   = 1024
	maxFrames    = 4096
)

var errMalformed = errors.New("malformed frame of direct messages")

// errUnknownKind is of a frame that a later version says: it is passed over.
var errUnknownKind = errors.New("a frame of a kind that this node does not know")

// decode refuses what no node of ours says.
func decode(in *control.MessageFrame) (messaging.Frame, error) {
	switch f := in.GetFrame().(type) {
	case *control.MessageFrame_Route:
		batch, err := decodeBatch(f.Route.GetBatch())
		return messaging.Route{
			Batch: batch, View: f.Route.GetView(), Overdue: f.Route.GetOverdue(), Hops: int(f.Route.GetHops()),
		}, err
	case *control.MessageFrame_Deliver:
		batch, err := decodeBatch(f.Deliver.GetBatch())
		holders, more := decodeBoots(f.Deliver.GetHolders())
		return messaging.Deliver{Batch: batch, Holders: holders, View: f.Deliver.GetView()}, errors.Join(err, more)
	case *control.MessageFrame_Receipt:
		holders, err := decodeBoots(f.Receipt.GetHolders())
		outcome := f.Receipt.GetOutcome()
		if outcome < control.MessageOutcome_MESSAGE_OUTCOME_SOME || outcome > control.MessageOutcome_MESSAGE_OUTCOME_BEHIND {
			err = fmt.Errorf("%w: outcome %d", errMalformed, outcome)
		}
		return messaging.Receipt{
			Number: f.Receipt.GetNumber(), To: messaging.UserID(f.Receipt.GetTo()), Outcome: messaging.Outcome(outcome), Holders: holders,
			View: f.Receipt.GetView(), Level: f.Receipt.GetLevel(),
		}, errors.Join(err, checkNames(f.Receipt.GetTo()))
	case *control.MessageFrame_Miss:
		return messaging.Miss{
			Number: f.Miss.GetNumber(), To: messaging.UserID(f.Miss.GetTo()), Unsettled: f.Miss.GetUnsettled(),
		}, checkNames(f.Miss.GetTo())
	case *control.MessageFrame_Register:
		here, err := decodeKeys(f.Register.GetHere())
		gone, more := decodeKeys(f.Register.GetGone())
		return messaging.Register{
			Number: f.Register.GetNumber(), Session: f.Register.GetSession(), View: f.Register.GetView(),
			Complete: f.Register.GetComplete(), Here: here, Gone: gone,
		}, errors.Join(err, more)
	case *control.MessageFrame_Registered:
		return messaging.Registered{Number: f.Registered.GetNumber()}, nil
	case *control.MessageFrame_Resync:
		return messaging.Resync{Session: f.Resync.GetSession()}, nil
	case nil:
		if len(in.ProtoReflect().GetUnknown()) > 0 {
			return nil, errUnknownKind
		}
		return nil, fmt.Errorf("%w: empty", errMalformed)
	default:
		return nil, errUnknownKind
	}
}

func decodeRun(in *control.NodeRun) (messaging.Peer, error) {
	p := messaging.Peer{ID: ring.NodeID(in.GetNode()), Boot: pin.BootID(in.GetBoot())}
	return p, checkNames(in.GetNode(), in.GetBoot())
}

func decodeBatch(in *control.UserMessages) (messaging.Batch, error) {
	if n := len(in.GetMessages()); n == 0 || n > maxMessages {
		return messaging.Batch{}, fmt.Errorf("%w: %d messages", errMalformed, n)
	}
	if n := len(in.GetAgesMs()); n != 0 && n != len(in.GetMessages()) {
		return messaging.Batch{}, fmt.Errorf("%w: %d ages of %d messages", errMalformed, n, len(in.GetMessages()))
	}
	origin, err := decodeRun(in.GetOrigin())
	if err = errors.Join(err, checkNames(in.GetTo())); err != nil {
		return messaging.Batch{}, err
	}
	out := messaging.Batch{Number: in.GetNumber(), Origin: origin, To: messaging.UserID(in.GetTo()), Previous: in.GetPrevious()}
	for _, age := range in.GetAgesMs() {
		out.Ages = append(out.Ages, time.Duration(max(1, age))*time.Millisecond)
	}
	for _, m := range in.GetMessages() {
		if err := checkNames(m.GetFrom(), m.GetStream(), m.GetKind()); err != nil {
			return messaging.Batch{}, err
		}
		if len(m.GetName()) > maxNameBytes || len(m.GetRoom()) > maxNameBytes || len(m.GetBody()) > maxBodyBytes {
			return messaging.Batch{}, fmt.Errorf("%w: a message is too long", errMalformed)
		}
		out.Messages = append(out.Messages, messaging.Message{
			From: messaging.UserID(m.GetFrom()), Name: m.GetName(), Stream: m.GetStream(), Seq: m.GetSeq(), Kind: m.GetKind(),
			Body: m.GetBody(), Room: m.GetRoom(), At: m.GetAtUnixMs(),
		})
	}
	return out, nil
}

func decodeBoots(in []string) ([]pin.BootID, error) {
	if len(in) > maxHolders {
		return nil, fmt.Errorf("%w: %d holders", errMalformed, len(in))
	}
	out := make([]pin.BootID, len(in))
	for i, boot := range in {
		out[i] = pin.BootID(boot)
	}
	return out, checkNames(in...)
}

func decodeKeys(in []byte) ([]messaging.Key, error) {
	const size = len(messaging.Key{})
	if len(in)%size != 0 {
		return nil, fmt.Errorf("%w: %d bytes of keys", errMalformed, len(in))
	}
	out := make([]messaging.Key, 0, len(in)/size)
	for ; len(in) > 0; in = in[size:] {
		out = append(out, messaging.Key(in[:size]))
	}
	return out, nil
}

func checkNames(names ...string) error {
	for _, name := range names {
		if name == "" || len(name) > maxNameBytes {
			return fmt.Errorf("%w: a name of %d bytes", errMalformed, len(name))
		}
	}
	return nil
}
