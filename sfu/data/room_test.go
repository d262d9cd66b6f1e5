package data

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/pion/datachannel"
	"github.com/pion/logging"
)

func negotiated(c *Client) { c.Streams = Negotiated() }

func openedElsewhere(c *Client) { c.Streams = Streams{Reliable: 3, Lossy: 1} }

func TestMessagesReachTheOthers(t *testing.T) {
	h := newHall(t)
	alice, bob, carol := h.enter("alice", openedElsewhere), h.enter("bob"), h.enter("carol", negotiated)
	for _, kind := range []Kind{Reliable, Lossy} {
		alice.say(kind, user("hello"))
		carol.say(kind, user("from carol"))
		want := content{payload: "hello", identity: "alice", sid: "PA_alice", innerIdentity: "alice", innerSID: "PA_alice"}
		if got := read(t, carol.hear(kind)); got != want {
			t.Errorf("carol hears %+v, want %+v", got, want)
		}
		heard := map[string]bool{read(t, bob.hear(kind)).payload: true, read(t, bob.hear(kind)).payload: true}
		if !heard["hello"] || !heard["from carol"] {
			t.Errorf("bob hears %v", heard)
		}
		// Who sends hears others only.
		if got := read(t, alice.hear(kind)); got.payload != "from carol" {
			t.Errorf("alice hears %+v", got)
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.passed) != 4 {
		t.Errorf("%d messages were handed to other nodes, want 4", len(h.passed))
	}
}

func TestAMessageGoesToWhomItNames(t *testing.T) {
	h := newHall(t)
	alice, bob, carol := h.enter("alice"), h.enter("bob"), h.enter("carol")
	alice.say(Reliable, append(user("to bob"), appendBytes(nil, packetDestinations, []byte("bob"))...))
	alice.say(Reliable, user("to bob, as older clients say it", appendBytes(nil, userDestinations, []byte("bob"))))
	alice.say(Reliable, user("to carol by id", appendBytes(nil, userDestSIDs, []byte("PA_carol"))))
	alice.say(Reliable, user("to nobody here", appendBytes(nil, userDestinations, []byte("dave"))))
	alice.say(Reliable, user("to all"))
	for _, c := range []struct {
		who  *guest
		want []string
	}{
		{bob, []string{"to bob", "to bob, as older clients say it", "to all"}},
		{carol, []string{"to carol by id", "to all"}},
	} {
		for _, want := range c.want {
			if got := read(t, c.who.hear(Reliable)); got.payload != want {
				t.Errorf("heard %q, want %q", got.payload, want)
			}
		}
	}
}

func TestWhoMayNotSendReachesNobody(t *testing.T) {
	h := newHall(t)
	alice, bob := h.enter("alice"), h.enter("bob")
	alice.may.Store(false)
	alice.say(Reliable, user("hush"))
	alice.say(Reliable, []byte("no protobuf"))
	eventually(t, "both are refused", func() bool { return h.tally.Refused.Load() == 2 })
	alice.may.Store(true)
	alice.say(Reliable, []byte("no protobuf"))
	alice.say(Reliable, user(strings.Repeat("x", 15<<10)))
	if got := read(t, bob.hear(Reliable)); len(got.payload) != 15<<10 {
		t.Errorf("bob hears %d bytes first", len(got.payload))
	}
	if n := h.tally.Refused.Load(); n != 3 {
		t.Errorf("%d messages were refused, want 3", n)
	}
	alice.say(Reliable, user(strings.Repeat("x", MaxMessageBytes)))
	select {
	case <-alice.gone:
	case <-time.After(patience):
		t.Error("a message that is longer than was told ends nothing")
	}
}

// TestAPersonIsBounded: with several connections too.
func TestAPersonIsBounded(t *testing.T) {
	h := newHall(t)
	h.enter("bob")
	message := user(strings.Repeat("x", 8<<10))
	sent := 0
	for _, tab := range []string{"eve-1", "eve-2"} {
		eve := h.enter(tab, func(c *Client) { c.Identity = "eve" })
		for range personBurstBytes / len(message) {
			eve.say(Lossy, message)
			sent++
			eventually(t, "the message is judged", func() bool {
				return int(h.tally.Flooded.Load()+h.tally.Sent.Load()+h.tally.Slow.Load()+h.tally.Missed.Load()) >= sent
			})
		}
	}
	if h.tally.Flooded.Load() == 0 {
		t.Errorf("eve's %d messages were all passed on", sent)
	}
}

// TestTooFastIsSlowedDown: reliable messages beyond the bound wait, and none is lost.
func TestTooFastIsSlowedDown(t *testing.T) {
	h := newHall(t)
	alice, bob := h.enter("alice"), h.enter("bob")
	message := user(strings.Repeat("x", 15<<10))
	count := personBurstBytes/len(message) + 4
	go func() {
		for range count {
			alice.say(Reliable, message)
		}
	}()
	for i := range count {
		if got := read(t, bob.hear(Reliable)); len(got.payload) != 15<<10 {
			t.Fatalf("message %d has %d bytes", i, len(got.payload))
		}
	}
	if h.tally.Flooded.Load()+h.tally.Slow.Load() != 0 {
		t.Error("messages were dropped")
	}
}

// TestASlowReceiverLosesAlone: what waits for a receiver is bounded, and the others get everything.
func TestASlowReceiverLosesAlone(t *testing.T) {
	h := newHall(t)
	bob, slow := h.enter("bob"), h.enter("slow")
	slow.near.close()
	message := user(strings.Repeat("x", 15<<10))
	for range 2 * reliableQueueBytes / len(message) {
		h.Deliver(Message{Kind: Reliable, Bytes: message})
		bob.hear(Reliable)
	}
	eventually(t, "the slow receiver loses some", func() bool { return h.tally.Slow.Load() > 0 })
	h.Room.mu.RLock()
	waiting := h.clients["slow"].channels[Reliable].Load().BufferedAmount()
	h.Room.mu.RUnlock()
	if waiting > reliableQueueBytes {
		t.Errorf("%d bytes wait for a receiver, want at most %d", waiting, reliableQueueBytes)
	}
}

// TestARoomIsBounded: what comes from other nodes and servers is dropped beyond what a room passes on.
func TestARoomIsBounded(t *testing.T) {
	h := newHall(t)
	h.enter("bob")
	message := user(strings.Repeat("x", 15<<10))
	for range 2 * roomBurstBytes / len(message) {
		h.Deliver(Message{Kind: Lossy, Bytes: message})
	}
	if h.tally.Flooded.Load() == 0 {
		t.Error("everything was passed on")
	}
}

func TestTooManyChannelsEndAll(t *testing.T) {
	h := newHall(t)
	alice := h.enter("alice")
	for i := range maxStreams {
		_, err := datachannel.Dial(alice.association, uint16(11+2*i), &datachannel.Config{Label: "more", LoggerFactory: logging.NewDefaultLoggerFactory()})
		if err != nil {
			break
		}
	}
	select {
	case <-alice.gone:
	case <-time.After(patience):
		t.Error("the channels stay")
	}
}

// TestOtherNodesMessagesAreDelivered, but not to their sender, nor to whom the room has elsewhere.
func TestOtherNodesMessagesAreDelivered(t *testing.T) {
	h := newHall(t)
	alice, bob := h.enter("alice"), h.enter("bob")
	h.Drop("nobody")
	h.Deliver(Message{Kind: Reliable, From: "alice", Bytes: user("moved")})
	h.Deliver(Message{Kind: Reliable, Bytes: user("of a server")})
	for _, want := range []string{"moved", "of a server"} {
		if got := read(t, bob.hear(Reliable)); got.payload != want {
			t.Errorf("bob hears %q, want %q", got.payload, want)
		}
	}
	if got := read(t, alice.hear(Reliable)); got.payload != "of a server" {
		t.Errorf("alice hears %q", got.payload)
	}
	h.Drop("bob")
	before := h.tally.Sent.Load()
	h.Deliver(Message{Kind: Reliable, From: "alice", Bytes: user("late")})
	if h.tally.Sent.Load() != before {
		t.Error("bob is sent a message after his place is elsewhere")
	}
}

func TestAForgedSenderIsReplaced(t *testing.T) {
	forged := appendBytes(user("x", appendBytes(nil, userIdentity, []byte("eve")), appendBytes(nil, userSID, []byte("PA_eve"))), packetIdentity, []byte("eve"))
	forged = append(appendBytes(forged, packetSID, []byte("PA_eve")), packetSequence<<3&0x7f|0x80, 1, 7)
	stamped, _, err := Stamp(forged, Sender{Peer: "p", Identity: "mallory"})
	if err != nil || bytes.Contains(stamped, []byte("eve")) {
		t.Errorf("stamped %q (%v)", stamped, err)
	}
	if got, want := read(t, stamped), (content{"x", "mallory", "PA_p", "mallory", "PA_p"}); got != want {
		t.Errorf("stamped %+v, want %+v", got, want)
	}
	for name, bad := range map[string][]byte{
		"speakers": appendBytes(nil, packetSpeaker, nil), "metrics": appendBytes(nil, packetMetrics, nil), "a length too long": {0x12, 5, 1},
		"a group": {0x13}, "field 0": {0x02, 0}, "an endless number": bytes.Repeat([]byte{0xff}, 12),
	} {
		if _, _, err := Stamp(bad, Sender{}); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}
