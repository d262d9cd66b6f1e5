package livekit

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/livekit/protocol/livekit"
	lksdk "github.com/livekit/server-sdk-go/v2"
	"github.com/pion/webrtc/v4"
	"google.golang.org/protobuf/proto"
)

// talker is a client that has heard these messages: "sender topic payload".
type talker struct {
	room *lksdk.Room

	mu    sync.Mutex
	heard map[string]int
}

func (p *talker) times(message string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.heard[message]
}

func (p *talker) note(message string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.heard[message]++
}

func talk(t *testing.T, c *cluster, room, identity string, options ...lksdk.ConnectOption) *talker {
	t.Helper()
	p := &talker{heard: map[string]int{}}
	callback := &lksdk.RoomCallback{ParticipantCallback: lksdk.ParticipantCallback{
		OnDataPacket: func(packet lksdk.DataPacket, from lksdk.DataReceiveParams) {
			if user, ok := packet.(*lksdk.UserDataPacket); ok {
				p.note(from.SenderIdentity + " " + user.Topic + " " + string(user.Payload))
			}
		},
	}}
	var err error
	p.room, err = lksdk.ConnectToRoomWithToken("ws://"+c.page, token(t, room, identity), callback, options...)
	if err != nil {
		t.Fatalf("%s does not get in: %v", identity, err)
	}
	t.Cleanup(p.room.Disconnect)
	return p
}

func (p *talker) say(t *testing.T, topic, text string, options ...lksdk.DataPublishOption) {
	t.Helper()
	if err := p.room.LocalParticipant.PublishDataPacket(&lksdk.UserDataPacket{Payload: []byte(text), Topic: topic}, options...); err != nil {
		t.Errorf("%s is not sent: %v", text, err)
	}
}

// TestData: packets of both kinds, to all and to one, of a server, streams and calls of methods, before and after the room's node is killed.
func TestData(t *testing.T) {
	c := newCluster(t)
	// Eve has a connection for each direction.
	ann, bob, eve := talk(t, c, "talk", "ann", lksdk.WithSinglePeerConnection()), talk(t, c, "talk", "bob", lksdk.WithSinglePeerConnection()), talk(t, c, "talk", "eve")
	people := map[string]*talker{"ann": ann, "bob": bob, "eve": eve}
	reliable := lksdk.WithDataPublishReliable(true)
	says := func(when string) {
		t.Helper()
		hears := func(message string) {
			t.Helper()
			until(t, when+": bob and eve hear: "+message, func() bool { return bob.times(message) > 0 && eve.times(message) > 0 })
		}
		// Who has just connected may not have an open channel, and misses what is said.
		until(t, when+": everybody hears everybody", func() bool {
			all := true
			for name, p := range people {
				p.say(t, when, "test", reliable)
				for other, q := range people {
					all = all && (other == name || q.times(name+" "+when+" test") > 0)
				}
			}
			return all
		})
		ann.say(t, when, "sure", reliable)
		hears("ann " + when + " sure")
		until(t, when+": a lossy message comes", func() bool {
			ann.say(t, when, "perhaps")
			return bob.times("ann "+when+" perhaps") > 0
		})
		ann.say(t, when, "between us", reliable, lksdk.WithDataPublishDestination([]string{"bob"}))
		ann.say(t, when, "the end", reliable)
		hears("ann " + when + " the end")
		if bob.times("ann "+when+" between us") != 1 || eve.times("ann "+when+" between us") != 0 {
			t.Errorf("%s: what is for bob is heard %d times by him, and %d times by eve", when, bob.times("ann "+when+" between us"), eve.times("ann "+when+" between us"))
		}
	}
	says("at first")

	server := lksdk.NewRoomServiceClient("http://"+c.page, key, secret)
	topic := "server"
	if _, err := server.SendData(t.Context(), &livekit.SendDataRequest{Room: "talk", Data: []byte("all"), Topic: &topic, Kind: livekit.DataPacket_RELIABLE, DestinationIdentities: []string{"eve"}}); err != nil {
		t.Error(err)
	}
	until(t, "eve hears the server", func() bool { return eve.times(" server all") == 1 })

	if err := bob.room.RegisterTextStreamHandler("letters", func(reader *lksdk.TextStreamReader, from string) { bob.note(from + " letters " + reader.ReadAll()) }); err != nil {
		t.Fatal(err)
	}
	letter := strings.Repeat("a long letter ", 5000)
	ann.room.LocalParticipant.SendText(letter, lksdk.StreamTextOptions{Topic: "letters"})
	until(t, "bob reads the letter", func() bool { return bob.times("ann letters "+letter) == 1 })

	if err := bob.room.RegisterRpcMethod("greet", func(call lksdk.RpcInvocationData) (string, error) {
		return call.CallerIdentity + ": " + call.Payload, nil
	}); err != nil {
		t.Fatal(err)
	}
	answer, err := ann.room.LocalParticipant.PerformRpc(lksdk.PerformRpcParams{DestinationIdentity: "bob", Method: "greet", Payload: "hello"})
	if err != nil || *answer != "ann: hello" {
		t.Errorf("bob answers %v, %v", answer, err)
	}

	c.kill(t, c.nodeOf(t, "talk"))
	says("after the death")
}

// connect opens the data channels that a page of ours has, for a member that shows and hears nothing, and notes what comes as "topic payload".
func (m *member) connect(t *testing.T, p *talker) (reliable *webrtc.DataChannel) {
	t.Helper()
	pc, err := webrtc.NewPeerConnection(webrtc.Configuration{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pc.Close() })
	negotiated, id := true, uint16(100)
	reliable, err = pc.CreateDataChannel("_reliable", &webrtc.DataChannelInit{Negotiated: &negotiated, ID: &id})
	if err != nil {
		t.Fatal(err)
	}
	open := make(chan struct{})
	reliable.OnOpen(func() { close(open) })
	reliable.OnMessage(func(message webrtc.DataChannelMessage) {
		packet := &livekit.DataPacket{}
		if proto.Unmarshal(message.Data, packet) == nil {
			p.note(packet.GetParticipantIdentity() + " " + packet.GetUser().GetTopic() + " " + string(packet.GetUser().GetPayload()))
		}
	})
	offer, err := pc.CreateOffer(nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := pc.SetLocalDescription(offer); err != nil {
		t.Fatal(err)
	}
	if err := m.conn.WriteJSON(map[string]any{"type": "offer", "id": "o1", "sdp": offer.SDP, "fresh": true, "senders": []any{}, "data": true}); err != nil {
		t.Fatal(err)
	}
	answer := m.hearsType("answer")
	if err := pc.SetRemoteDescription(webrtc.SessionDescription{Type: webrtc.SDPTypeAnswer, SDP: answer["sdp"].(string)}); err != nil {
		t.Fatalf("%v of %v", err, answer)
	}
	select {
	case <-open:
	case <-time.After(generous):
		t.Fatal("the data channels do not open")
	}
	return reliable
}

// TestDataOfBothProtocols: a client of LiveKit and one of our own protocol hear each other, by the sender's identity and to a destination.
func TestDataOfBothProtocols(t *testing.T) {
	c := newCluster(t)
	ann := talk(t, c, "both", "ann", lksdk.WithSinglePeerConnection())
	page := &talker{heard: map[string]int{}}
	m, _ := (&servers{pages: []string{c.page}}).enters(t, 0, "both", "page")
	channel := m.connect(t, page)
	until(t, "the page hears ann", func() bool {
		ann.say(t, "chess", "e4", lksdk.WithDataPublishReliable(true), lksdk.WithDataPublishDestination([]string{"page"}))
		return page.times("ann chess e4") > 0
	})
	topic := "chess"
	packet, err := proto.Marshal(&livekit.DataPacket{Value: &livekit.DataPacket_User{User: &livekit.UserPacket{Payload: []byte("e5"), Topic: &topic, DestinationSids: []string{ann.room.LocalParticipant.SID()}}}})
	if err != nil {
		t.Fatal(err)
	}
	until(t, "ann hears the page", func() bool {
		if err := channel.Send(packet); err != nil {
			t.Fatal(err)
		}
		return ann.times("page chess e5") > 0
	})
}
