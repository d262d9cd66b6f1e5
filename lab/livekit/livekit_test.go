// Package livekit has LiveKit's Go SDK, unmodified, join rooms of real processes, some of which are killed. It is a module of its own, because that SDK
// brings many others.
package livekit

import (
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/livekit/protocol/auth"
	lksdk "github.com/livekit/server-sdk-go/v2"
	"github.com/pion/webrtc/v4"
	"github.com/pion/webrtc/v4/pkg/media"
)

// person is a client of LiveKit's Go SDK. It counts what it gets.
type person struct {
	room *lksdk.Room

	mu           sync.Mutex
	packets      map[string]int // by identity and kind
	newest       map[string]time.Time
	longest      map[string]time.Duration // between two packets
	size         map[string]int           // of the last packet, in bytes
	muted        map[string]bool
	speakers     int
	disconnected bool
	reconnected  int
}

func (p *person) got(of string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.packets[of]
}

// forget forgets how long nothing came of a stream.
func (p *person) forget(of string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.longest[of] = 0
}

func (p *person) longestOf(of string) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.longest[of]
}

func (p *person) isMuted(of string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.muted[of]
}

func (p *person) ended() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.disconnected
}

func (p *person) restarted() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.reconnected
}

func (p *person) read(track *webrtc.TrackRemote, of string) {
	for {
		packet, _, err := track.ReadRTP()
		if err != nil {
			return
		}
		p.mu.Lock()
		p.size[of] = len(packet.Payload)
		now := time.Now()
		if before := p.newest[of]; !before.IsZero() {
			p.longest[of] = max(p.longest[of], now.Sub(before))
		}
		p.packets[of]++
		p.newest[of] = now
		p.mu.Unlock()
	}
}

func token(t *testing.T, room, identity string) string {
	t.Helper()
	made, err := auth.NewAccessToken(key, secret).SetIdentity(identity).SetName(identity).SetMetadata("of " + identity).
		SetVideoGrant(&auth.VideoGrant{RoomJoin: true, Room: room}).ToJWT()
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func join(t *testing.T, c *cluster, room, identity string) *person {
	t.Helper()
	return connect(t, c, room, identity, lksdk.WithSinglePeerConnection())
}

// connect joins with the SDK's options. By default the client has a connection for each direction.
func connect(t *testing.T, c *cluster, room, identity string, options ...lksdk.ConnectOption) *person {
	t.Helper()
	p := &person{packets: map[string]int{}, size: map[string]int{}, newest: map[string]time.Time{}, longest: map[string]time.Duration{}, muted: map[string]bool{}}
	set := func(pub lksdk.TrackPublication, who lksdk.Participant, muted bool) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.muted[who.Identity()+" "+string(pub.Kind())] = muted
	}
	callback := &lksdk.RoomCallback{
		OnDisconnected: func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.disconnected = true
		},
		OnReconnected: func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.reconnected++
		},
		OnActiveSpeakersChanged: func([]lksdk.Participant) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.speakers++
		},
		ParticipantCallback: lksdk.ParticipantCallback{
			OnTrackSubscribed: func(track *webrtc.TrackRemote, pub *lksdk.RemoteTrackPublication, who *lksdk.RemoteParticipant) {
				go p.read(track, who.Identity()+" "+string(pub.Kind()))
			},
			OnTrackMuted:   func(pub lksdk.TrackPublication, who lksdk.Participant) { set(pub, who, true) },
			OnTrackUnmuted: func(pub lksdk.TrackPublication, who lksdk.Participant) { set(pub, who, false) },
		},
	}
	var err error
	p.room, err = lksdk.ConnectToRoomWithToken("ws://"+c.page, token(t, room, identity), callback, options...)
	if err != nil {
		t.Fatalf("%s does not get in: %v", identity, err)
	}
	t.Cleanup(p.room.Disconnect)
	return p
}

// publish sends frames until the test ends.
func (p *person) publish(t *testing.T, mime string, every time.Duration, frame func(n int) []byte) *lksdk.LocalTrackPublication {
	t.Helper()
	capability := webrtc.RTPCodecCapability{MimeType: mime, ClockRate: 90000}
	if mime == webrtc.MimeTypeOpus {
		capability.ClockRate, capability.Channels = 48000, 2
	}
	track, err := lksdk.NewLocalTrack(capability)
	if err != nil {
		t.Fatal(err)
	}
	published, err := p.room.LocalParticipant.PublishTrack(track, &lksdk.TrackPublicationOptions{Name: mime, VideoWidth: 320, VideoHeight: 180})
	if err != nil {
		t.Fatalf("not published: %v", err)
	}
	go func() {
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for n := 0; ; n++ {
			select {
			case <-t.Context().Done():
				return
			case <-ticker.C:
				_ = track.WriteSample(media.Sample{Data: frame(n), Duration: every}, nil)
			}
		}
	}()
	return published
}

func (p *person) speak(t *testing.T) *lksdk.LocalTrackPublication {
	t.Helper()
	return p.publish(t, webrtc.MimeTypeOpus, 20*time.Millisecond, func(int) []byte { return []byte{0xf8, 0xff, 0xfe} })
}

// show publishes pictures of which only the head is VP8.
func (p *person) show(t *testing.T) *lksdk.LocalTrackPublication {
	t.Helper()
	return p.publish(t, webrtc.MimeTypeVP8, 40*time.Millisecond, func(n int) []byte {
		frame := make([]byte, 400)
		if n%10 != 0 {
			frame[0] = 1
			return frame
		}
		copy(frame, []byte{0x10, 0, 0, 0x9d, 0x01, 0x2a, 64, 1, 180, 0})
		return frame
	})
}

func flows(t *testing.T, p *person, of string) {
	t.Helper()
	before := p.got(of)
	until(t, "packets of "+of, func() bool { return p.got(of) > before+20 })
}

// TestTwoPeopleHearAndSeeEachOther also kills their media node.
func TestTwoPeopleHearAndSeeEachOther(t *testing.T) {
	c := newCluster(t)
	ann, bob := join(t, c, "lobby", "ann"), join(t, c, "lobby", "bob")
	microphone := ann.speak(t)
	bob.speak(t)
	ann.show(t)
	flows(t, bob, "ann audio")
	flows(t, ann, "bob audio")
	flows(t, bob, "ann video")
	until(t, "ann knows bob", func() bool {
		who := ann.room.GetParticipantByIdentity("bob")
		return who != nil && who.Metadata() == "of bob" && who.IsMicrophoneEnabled()
	})

	microphone.SetMuted(true)
	until(t, "bob sees the mute", func() bool { return bob.isMuted("ann audio") })
	microphone.SetMuted(false)
	until(t, "bob sees that ann is heard again", func() bool { return !bob.isMuted("ann audio") })
	flows(t, bob, "ann audio")

	sid := bob.room.LocalParticipant.SID()
	c.kill(t, c.nodeOf(t, "lobby"))
	flows(t, bob, "ann audio")
	flows(t, ann, "bob audio")
	flows(t, bob, "ann video")
	if now := bob.room.LocalParticipant.SID(); now != sid {
		t.Errorf("bob was %s, and is %s after the node's death", sid, now)
	}
	if ann.ended() || bob.ended() {
		t.Error("a client was disconnected")
	}
	if n := len(ann.room.GetRemoteParticipants()); n != 1 {
		t.Errorf("ann sees %d others", n)
	}
	bob.room.Disconnect()
	until(t, "ann sees that bob has left", func() bool { return ann.room.GetParticipantByIdentity("bob") == nil })
}

// TestAnIdentityIsOnce: who joins anew takes the place of the same identity's earlier client, which is told so.
func TestAnIdentityIsOnce(t *testing.T) {
	c := newCluster(t)
	ann, first := join(t, c, "lobby", "ann"), join(t, c, "lobby", "bob")
	first.speak(t)
	flows(t, ann, "bob audio")
	second := join(t, c, "lobby", "bob")
	until(t, "the first bob has to go", first.ended)
	second.speak(t)
	flows(t, ann, "bob audio")
	if sid := ann.room.GetParticipantByIdentity("bob").SID(); sid != second.room.LocalParticipant.SID() {
		t.Errorf("ann sees %s as bob, who is %s", sid, second.room.LocalParticipant.SID())
	}
}

// TestSubscriptions: a client ends a subscription, and takes it up again.
func TestSubscriptions(t *testing.T) {
	c := newCluster(t)
	ann, bob := join(t, c, "lobby", "ann"), join(t, c, "lobby", "bob")
	ann.speak(t)
	ann.show(t)
	flows(t, bob, "ann audio")
	flows(t, bob, "ann video")
	for _, kind := range []lksdk.TrackKind{lksdk.TrackKindAudio, lksdk.TrackKindVideo} {
		var track *lksdk.RemoteTrackPublication
		for _, pub := range bob.room.GetParticipantByIdentity("ann").TrackPublications() {
			if pub.Kind() == kind {
				track = pub.(*lksdk.RemoteTrackPublication)
			}
		}
		of := "ann " + string(kind)
		if err := track.SetSubscribed(false); err != nil {
			t.Fatal(err)
		}
		until(t, of+" ends", func() bool {
			before := bob.got(of)
			time.Sleep(500 * time.Millisecond)
			return bob.got(of) == before
		})
		if err := track.SetSubscribed(true); err != nil {
			t.Fatal(err)
		}
		flows(t, bob, of)
	}
}

// TestPeopleOfOtherClients: the people of "holdfast load" speak our own protocol, as pages do.
func TestPeopleOfOtherClients(t *testing.T) {
	c := newCluster(t)
	start(t, build(t), []string{"HOLDFAST_API_KEYS=" + key + ":" + secret}, "load", "--url", "http://"+c.page, "--room", "lobby", "--peers", "5", "--duration", "5m", "--video", "light")
	ann := join(t, c, "lobby", "ann")
	until(t, "five others come", func() bool { return len(ann.room.GetRemoteParticipants()) == 5 })
	for _, other := range ann.room.GetRemoteParticipants() {
		flows(t, ann, other.Identity()+" audio")
		flows(t, ann, other.Identity()+" video")
	}
}

// TestWhoIsRefusedIsToldWhy: by the status of the request, before the WebSocket.
func TestWhoIsRefusedIsToldWhy(t *testing.T) {
	c := newCluster(t)
	for _, refused := range []struct {
		url    string
		status int
	}{
		{"/rtc/validate?access_token=nonsense&join_request=x", http.StatusUnauthorized},
		{"/rtc/v1/validate?access_token=" + token(t, "lobby", "ann") + "x&join_request=EgA=", http.StatusUnauthorized},
		{"/rtc/v1/validate?access_token=" + token(t, "lobby", "ann"), http.StatusBadRequest},
		{"/rtc/validate?access_token=" + token(t, "lobby", "ann"), http.StatusOK},
		{"/rtc/v1?access_token=" + token(t, "lobby", "ann") + "&join_request=nonsense", http.StatusBadRequest},
		{"/rtc/v1/validate?access_token=" + token(t, "lobby", "ann") + "&join_request=EgA=", http.StatusOK},
	} {
		answer, err := http.Get("http://" + c.page + refused.url)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if answer.StatusCode != refused.status || answer.Header.Get("Access-Control-Allow-Origin") != "*" {
			t.Errorf("%.60s is answered %d, want %d", refused.url, answer.StatusCode, refused.status)
		}
	}
}

// TestADrain empties the node of a call: its people go on at the other one, and nobody is told to leave.
func TestADrain(t *testing.T) {
	c := newCluster(t)
	ann, bob := join(t, c, "lobby", "ann"), join(t, c, "lobby", "bob")
	ann.speak(t)
	bob.speak(t)
	flows(t, bob, "ann audio")
	from := c.nodeOf(t, "lobby")
	start(t, build(t), []string{"HOLDFAST_API_KEYS=" + key + ":" + secret}, "drain", from, "--server", "http://"+c.page)
	until(t, "the room is at the other node", func() bool { return c.nodeOf(t, "lobby") != from })
	flows(t, bob, "ann audio")
	flows(t, ann, "bob audio")
	if ann.ended() || bob.ended() {
		t.Error("a client was disconnected")
	}
}
