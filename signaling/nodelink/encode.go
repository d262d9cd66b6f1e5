package nodelink

import (
	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/people/messaging"
	"github.com/holdfast-rtc/holdfast/pin"
)

func encode(f messaging.Frame) *control.MessageFrame {
	switch f := f.(type) {
	case messaging.Route:
		return &control.MessageFrame{Frame: &control.MessageFrame_Route{Route: &control.MessageRoute{
			Batch: encodeBatch(f.Batch), View: f.View, Overdue: f.Overdue, Hops: uint32(f.Hops),
		}}}
	case messaging.Deliver:
		return &control.MessageFrame{Frame: &control.MessageFrame_Deliver{Deliver: &control.MessageDeliver{
			Batch: encodeBatch(f.Batch), Holders: encodeBoots(f.Holders), View: f.View,
		}}}
	case messaging.Receipt:
		return &control.MessageFrame{Frame: &control.MessageFrame_Receipt{Receipt: &control.MessageReceipt{
			Number: f.Number, To: string(f.To), Outcome: control.MessageOutcome(f.Outcome), Holders: encodeBoots(f.Holders),
			View: f.View, Level: f.Level,
		}}}
	case messaging.Miss:
		return &control.MessageFrame{Frame: &control.MessageFrame_Miss{Miss: &control.MessageMiss{
			Number: f.Number, To: string(f.To), Unsettled: f.Unsettled,
		}}}
	case messaging.Register:
		return &control.MessageFrame{Frame: &control.MessageFrame_Register{Register: &control.MessageRegister{
			Number: f.Number, Session: f.Session, View: f.View, Complete: f.Complete, Here: encodeKeys(f.Here), Gone: encodeKeys(f.Gone),
		}}}
	case messaging.Registered:
		return &control.MessageFrame{Frame: &control.MessageFrame_Registered{Registered: &control.MessageRegistered{Number: f.Number}}}
	case messaging.Resync:
		return &control.MessageFrame{Frame: &control.MessageFrame_Resync{Resync: &control.MessageResync{Session: f.Session}}}
	default:
		return &control.MessageFrame{}
	}
}

func encodeRun(p messaging.Peer) *control.NodeRun {
	return &control.NodeRun{Node: string(p.ID), Boot: string(p.Boot)}
}

func encodeBatch(b messaging.Batch) *control.UserMessages {
	out := &control.UserMessages{Number: b.Number, Origin: encodeRun(b.Origin), To: string(b.To), Previous: b.Previous}
	for _, age := range b.Ages {
		out.AgesMs = append(out.AgesMs, uint32(max(1, age.Milliseconds())))
	}
	for _, m := range b.Messages {
		out.Messages = append(out.Messages, &control.UserMessage{
			From: string(m.From), Name: m.Name, Stream: m.Stream, Seq: m.Seq, Kind: m.Kind, Body: m.Body, Room: m.Room, AtUnixMs: m.At,
		})
	}
	return out
}

func encodeBoots(boots []pin.BootID) []string {
	out := make([]string, len(boots))
	for i, boot := range boots {
		out[i] = string(boot)
	}
	return out
}

func encodeKeys(keys []messaging.Key) []byte {
	out := make([]byte, 0, len(keys)*len(messaging.Key{}))
	for _, key := range keys {
		out = append(out, key[:]...)
	}
	return out
}
