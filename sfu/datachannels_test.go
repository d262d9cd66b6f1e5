package sfu

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pion/webrtc/v4"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/sfu/data"
)

// talker is a client with a channel for reliable data and one for lossy.
type talker struct {
	*mediaClient

	stream   *attachStream
	channels map[data.Kind]*webrtc.DataChannel
	heard    chan string
}

// newTalker joins a client that only watches, and connects it.
func newTalker(t *testing.T, stream *attachStream) *talker {
	t.Helper()
	c := &talker{mediaClient: newMediaClient(t, 'd', false, 1), stream: stream, channels: map[data.Kind]*webrtc.DataChannel{}, heard: make(chan string, 100)}
	open := make(chan struct{}, 2)
	never, unordered := uint16(0), false
	for kind, init := range map[data.Kind]*webrtc.DataChannelInit{data.Reliable: nil, data.Lossy: {Ordered: &unordered, MaxRetransmits: &never}} {
		label := map[data.Kind]string{data.Reliable: "_reliable", data.Lossy: "_lossy"}[kind]
		channel, err := c.pc.CreateDataChannel(label, init)
		if err != nil {
			t.Fatal(err)
		}
		channel.OnOpen(func() { open <- struct{}{} })
		channel.OnMessage(func(m webrtc.DataChannelMessage) { c.heard <- string(m.Data) })
		c.channels[kind] = channel
	}
	c.negotiate(stream, nil)
	<-open
	<-open
	return c
}

// say sends a DataPacket with a payload of less than 126 bytes, to an identity or to all.
func (c *talker) say(kind data.Kind, payload, to string) {
	c.t.Helper()
	packet := string(rune(2<<3|2)) + string(rune(len(payload)+2)) + string(rune(2<<3|2)) + string(rune(len(payload))) + payload
	if to != "" {
		packet += string(rune(5<<3|2)) + string(rune(len(to))) + to
	}
	if err := c.channels[kind].Send([]byte(packet)); err != nil {
		c.t.Error(err)
	}
}

// hears waits for the messages with these texts, in any order, each with its sender.
func (c *talker) hears(from string, texts ...string) {
	c.t.Helper()
	for range texts {
		select {
		case message := <-c.heard:
			i := slices.IndexFunc(texts, func(text string) bool { return strings.Contains(message, text) })
			if i < 0 || !strings.Contains(message, "PA_"+from) {
				c.t.Errorf("heard %q, want %q of %s", message, texts, from)
			}
		case <-c.t.Context().Done():
			c.t.Fatal("heard nothing")
		}
	}
}

func mayChat(a *control.Attach) { a.CanChat = true }

func TestDataGoesThroughARoom(t *testing.T) {
	s := newStage(t, "one")
	stream, _ := s.attach("room", "alice", 1, mayChat)
	alice := newTalker(t, stream)
	stream, _ = s.attach("room", "bob", 1, mayChat)
	bob := newTalker(t, stream)
	stream, _ = s.attach("room", "mute", 1)
	mute := newTalker(t, stream)
	mute.say(data.Reliable, "hush", "")
	eventually(t, "who may not send is refused", func() bool { return s.node.messages.Refused.Load() == 1 })
	alice.say(data.Reliable, "sure", "")
	alice.say(data.Lossy, "perhaps", "")
	for _, c := range []*talker{bob, mute} {
		c.hears("alice", "sure", "perhaps")
	}
	alice.say(data.Reliable, "between us", "bob")
	bob.hears("alice", "between us")
	// The right is the peer's of this moment.
	s.moderate(&control.ModerateRequest{Room: "room", Act: control.Act_ACT_UPDATE, Peer: "mute", Update: &control.Update{Permission: &control.Permission{CanChat: true}}})
	mute.say(data.Reliable, "may I", "")
	bob.hears("mute", "may I")
	reply, err := s.client.SendData(t.Context(), &control.Data{Room: "room", Packet: []byte("\x12\x05\x12\x03abcPA_"), Identities: []string{"bob"}})
	if err != nil || !reply.GetHeld() {
		t.Fatalf("a server's message: %v, %v", reply, err)
	}
	bob.hears("", "abc")
	if n := len(mute.heard); n != 0 {
		t.Errorf("somebody heard %d messages of others", n)
	}
}

// TestWithoutDataNothingIsKept: an offer that lacks data channels has no association, and its later offers get none.
func TestWithoutDataNothingIsKept(t *testing.T) {
	s := newStage(t, "one")
	stream, _ := s.attach("room", "alice", 1, mayChat)
	alice := newMediaClient(t, 'a', false, 1)
	alice.negotiate(stream, nil)
	stream.awaitConnected()
	if _, err := alice.pc.CreateDataChannel("_reliable", nil); err != nil {
		t.Fatal(err)
	}
	offer := alice.offerMessage(nil)
	stream.send(&control.PeerMessage{Message: &control.PeerMessage_Offer{Offer: offer}})
	if answer := stream.awaitAnswer(offer.GetId()); !strings.Contains(answer, "m=application 0 UDP/DTLS/SCTP webrtc-datachannel\r\n") {
		t.Errorf("answered\n%s", answer)
	}
}

// TestDataCrossesTheNodesOfARoom: from a branch to the owner and to another branch, and back.
func TestDataCrossesTheNodesOfARoom(t *testing.T) {
	s := newSpreadRoom(t, 2)
	host, _ := s.attach("room", "host", 1, knowsPlaces, mayChat)
	people := map[string]*talker{"host": newTalker(t, host)}
	s.spread()
	for i, name := range []string{"one", "two"} {
		message := s.watcher(name, 1)
		mayChat(message.GetAttach())
		stream, _ := attachedAt(s.branches[i], message)
		people[name] = newTalker(t, stream)
	}
	for from, c := range people {
		c.say(data.Reliable, "hello", "")
		for name, other := range people {
			if name != from {
				other.hears(from, "hello")
			}
		}
		c.say(data.Reliable, "to the host", "host")
		if from != "host" {
			people["host"].hears(from, "to the host")
		}
	}
	for name, c := range people {
		if n := len(c.heard); n != 0 {
			t.Errorf("%s heard %d messages more", name, n)
		}
	}
}

// TestDataDoesNotEndALink: what waits for a link that carries the room's state is left room.
func TestDataDoesNotEndALink(t *testing.T) {
	s := newStage(t, "one")
	s.attach("room", "alice", 1)
	r := s.roomOf()
	branch := newMember(&control.Place{Node: "two"}, "a test", time.Now())
	branch.link = r.node.newLinkStream(idleMedia{}, &r.current, r.log)
	s.onLoop("room", func(*room) {
		r.members.branches["two"] = branch
		for range 2 * linkMessages {
			r.messages.tell(&control.Data{}, nil)
		}
		delete(r.members.branches, "two")
	})
	select {
	case <-branch.link.ended:
		t.Error("the link ended")
	default:
	}
	if waiting, dropped := len(branch.link.out), s.node.messages.Unspread.Load(); waiting > linkedMessages+1 || dropped == 0 {
		t.Errorf("%d messages wait, and %d were dropped", waiting, dropped)
	}
}
