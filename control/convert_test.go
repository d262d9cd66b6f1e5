package control

import (
	"errors"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/holdfast-rtc/holdfast/pin"
)

var testPin = pin.Pin{
	Fence: pin.Fence{Epoch: 1769000000000, Nonce: 0xabc}, Node: "sfu-1", Boot: "1769000000000-00000001", Control: "127.0.0.1:7001",
}

func TestPinsAndFencesRoundTrip(t *testing.T) {
	raw, err := proto.Marshal(PinProto(testPin))
	if err != nil {
		t.Fatal(err)
	}
	var message Pin
	if err := proto.Unmarshal(raw, &message); err != nil {
		t.Fatal(err)
	}
	if got, err := message.Value(); err != nil || got != testPin {
		t.Fatalf("Value = %+v, %v, want %+v", got, err, testPin)
	}
	if got, err := FenceProto(testPin.Fence).Value(); err != nil || got != testPin.Fence {
		t.Fatalf("Value = %+v, %v, want %+v", got, err, testPin.Fence)
	}
}

func TestForeignMessagesAreJudged(t *testing.T) {
	for name, value := range map[string]func() error{
		"no pin":             func() error { _, err := (*Pin)(nil).Value(); return err },
		"empty pin":          func() error { _, err := (&Pin{}).Value(); return err },
		"no fence":           func() error { _, err := (*Fence)(nil).Value(); return err },
		"epoch 0":            func() error { _, err := (&Fence{Nonce: 1}).Value(); return err },
		"separator":          func() error { p := PinProto(testPin); p.Node = "a|b"; _, err := p.Value(); return err },
		"no heartbeat":       func() error { _, err := (*Heartbeat)(nil).Value(); return err },
		"no media":           func() error { _, err := (&Heartbeat{Node: "n", Boot: "b"}).Value(); return err },
		"media port 0":       func() error { _, err := (&Heartbeat{Node: "n", Boot: "b", Media: "127.0.0.1:0"}).Value(); return err },
		"heartbeat, no boot": func() error { _, err := (&Heartbeat{Node: "n", Media: "127.0.0.1:5"}).Value(); return err },
	} {
		if err := value(); !errors.Is(err, pin.ErrCorrupt) {
			t.Errorf("%s: %v, want ErrCorrupt", name, err)
		}
	}
}

// FuzzPinMessage feeds arbitrary wire bytes: nothing panics, and what is accepted
// could be stored and comes back the same.
func FuzzPinMessage(f *testing.F) {
	raw, err := proto.Marshal(PinProto(testPin))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(raw)
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, raw []byte) {
		var message Pin
		if proto.Unmarshal(raw, &message) != nil {
			return
		}
		got, err := message.Value()
		if err != nil {
			if !errors.Is(err, pin.ErrCorrupt) {
				t.Fatalf("Value = %v, does not wrap ErrCorrupt", err)
			}
			return
		}
		if back, err := pin.Parse(got.Encode()); err != nil || back != got {
			t.Fatalf("accepted %+v, which cannot be stored: %v", got, err)
		}
		if back, err := PinProto(got).Value(); err != nil || back != got {
			t.Fatalf("accepted %+v, which does not round-trip: %+v, %v", got, back, err)
		}
	})
}

// FuzzHeartbeat does the same for the first message of a Watch.
func FuzzHeartbeat(f *testing.F) {
	raw, err := proto.Marshal(&Heartbeat{Node: "sfu-1", Boot: "1769000000000-00000001", Media: "127.0.0.1:7002", Seq: 1})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(raw)
	later, err := proto.Marshal(&Heartbeat{Node: "sfu-1", Boot: "1769000000000-00000001", Media: "127.0.0.1:7002", Version: 9, Capabilities: []string{"live-move", "", "b\n", "b"}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(protowire.AppendVarint(protowire.AppendTag(later, 900, protowire.VarintType), 7))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var message Heartbeat
		if proto.Unmarshal(raw, &message) != nil {
			return
		}
		if hello, err := message.Value(); err == nil && (hello.Node == "" || hello.Boot == "") {
			t.Fatalf("accepted a heartbeat of nobody: %+v", hello)
		} else if strings.ContainsFunc(hello.Capabilities, func(c rune) bool { return c <= ' ' || c > '~' }) {
			t.Fatalf("accepted capabilities %q", hello.Capabilities)
		}
	})
}
