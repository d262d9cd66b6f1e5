package livekit

import (
	"strings"
	"testing"

	lksdk "github.com/livekit/server-sdk-go/v2"
)

// TestTwoConnections: clients with a connection for each direction, which is the SDK's default, hear and see each other and a client with one,
// and go on after their media node's death.
func TestTwoConnections(t *testing.T) {
	c := newCluster(t)
	ann, bob := connect(t, c, "lobby", "ann"), connect(t, c, "lobby", "bob")
	carl := join(t, c, "lobby", "carl")
	microphone := ann.speak(t)
	ann.show(t)
	bob.speak(t)
	carl.speak(t)
	carl.show(t)
	everything := func() {
		t.Helper()
		heard := map[string]*person{}
		for by, of := range map[*person][]string{
			bob: {"ann audio", "ann video", "carl audio", "carl video"}, ann: {"bob audio", "carl audio", "carl video"}, carl: {"ann audio", "ann video", "bob audio"},
		} {
			for _, stream := range of {
				heard[by.room.LocalParticipant.Identity()+" "+stream] = by
			}
		}
		before := map[string]int{}
		for name, by := range heard {
			_, stream, _ := strings.Cut(name, " ")
			before[name] = by.got(stream)
		}
		for name, by := range heard {
			_, stream, _ := strings.Cut(name, " ")
			until(t, "packets for "+name, func() bool { return by.got(stream) > before[name]+20 })
		}
	}
	everything()

	microphone.SetMuted(true)
	for _, p := range []*person{bob, carl} {
		until(t, "the mute is seen", func() bool { return p.isMuted("ann audio") })
	}
	microphone.SetMuted(false)
	until(t, "bob sees that ann is heard again", func() bool { return !bob.isMuted("ann audio") })
	everything()

	c.kill(t, c.nodeOf(t, "lobby"))
	everything()
	for name, p := range map[string]*person{"ann": ann, "bob": bob, "carl": carl} {
		if p.ended() || len(p.room.GetRemoteParticipants()) != 2 {
			t.Errorf("%s: disconnected %v, sees %d others", name, p.ended(), len(p.room.GetRemoteParticipants()))
		}
	}
	carl.room.Disconnect()
	until(t, "ann sees that carl has left", func() bool { return ann.room.GetParticipantByIdentity("carl") == nil })
	dave := connect(t, c, "lobby", "dave", lksdk.WithAutoSubscribe(false))
	dave.speak(t)
	flows(t, ann, "dave audio")
	if n := dave.got("ann audio"); n > 0 {
		t.Errorf("dave, who subscribes to nothing, has %d packets of ann", n)
	}
}

// TestALostSocket: clients that lose their WebSocket come back as the same participants, and nobody sees them leave.
func TestALostSocket(t *testing.T) {
	for name, options := range map[string][]lksdk.ConnectOption{"one connection": {lksdk.WithSinglePeerConnection()}, "two connections": nil} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			var cut func()
			page := c.page
			c.page, cut = balance(t, page)
			ann := connect(t, c, "lobby", "ann", options...)
			c.page = page
			bob := connect(t, c, "lobby", "bob", options...)
			ann.speak(t)
			bob.speak(t)
			flows(t, bob, "ann audio")
			flows(t, ann, "bob audio")
			sid := ann.room.LocalParticipant.SID()
			bob.forget("ann audio")
			cut()
			until(t, "ann is back", func() bool { return ann.restarted() > 0 })
			flows(t, bob, "ann audio")
			flows(t, ann, "bob audio")
			t.Logf("bob did not hear ann for %v", bob.longestOf("ann audio"))
			if now := ann.room.LocalParticipant.SID(); now != sid || ann.ended() {
				t.Errorf("ann was %s, and is %s; disconnected %v", sid, now, ann.ended())
			}
		})
	}
}
