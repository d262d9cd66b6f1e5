package peer

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// TestMessagesAreRepeatedAndDropped by the rules of docs/PROTOCOL.md, over two connections.
func TestMessagesAreRepeatedAndDropped(t *testing.T) {
	var took, told []string
	m := NewMessages(
		func(from string, body json.RawMessage) { took = append(took, from+string(body)) },
		func(to string, seq uint64, state string) { told = append(told, fmt.Sprint(to, seq, state)) },
	)
	send := func(body string) {
		t.Helper()
		if !m.Send("bob", json.RawMessage(body), func(uint64) {}) {
			t.Fatal("a message is not taken")
		}
	}
	says := func(want ...uint64) {
		t.Helper()
		var got []uint64
		for _, message := range m.outgoing() {
			if sent, is := message.(*wire.SendMessage); is {
				got = append(got, sent.Seq)
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("says %v, want %v", got, want)
		}
	}
	send("1")
	send("2")
	says() // There is no connection.
	m.heard(&wire.Connected{})
	says(1, 2)
	m.heard(&wire.MessageState{To: "bob", Stream: m.stream, Seq: 1, State: "accepted"})
	m.heard(&wire.MessageState{To: "bob", Stream: m.stream, Seq: 2, State: "delivered"})
	m.heard(&wire.MessageState{To: "bob", Stream: "another life", Seq: 1, State: "delivered"})
	m.heard(&wire.UserMessage{From: "bob", Body: json.RawMessage("7"), Stream: "s", Seq: 7})
	m.lost()
	send("3")
	m.heard(&wire.Resumed{})
	says(1, 3)
	for _, seq := range []uint64{7, 6, 8} {
		m.heard(&wire.UserMessage{From: "bob", Body: json.RawMessage(fmt.Sprint(seq)), Stream: "s", Seq: seq})
	}
	if out := m.outgoing(); len(out) != 1 || out[0].(*wire.Received).UpTo[0].Seq != 8 { //nolint:forcetypeassert // a panic fails the test
		t.Errorf("acknowledges %+v", out)
	}
	if !slices.Equal(took, []string{"bob7", "bob8"}) || !slices.Equal(told, []string{"bob2delivered"}) {
		t.Errorf("took %v, was told %v", took, told)
	}
	for len(m.letters) < waitingMessages {
		send("x")
	}
	if m.Send("bob", json.RawMessage("x"), func(uint64) {}) {
		t.Error("one more than the server takes")
	}
}
