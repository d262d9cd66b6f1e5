package sfu

import (
	"fmt"
	"slices"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/sfu/forward"
)

func (s *stage) moderate(request *control.ModerateRequest) *control.ModerateReply {
	s.t.Helper()
	request.Room = "room"
	reply, err := s.client.Moderate(s.t.Context(), request)
	if err != nil {
		s.t.Fatal(err)
	}
	return reply
}

func muting(peer string) *control.ModerateRequest {
	return &control.ModerateRequest{Act: control.Act_ACT_MUTE, Peer: peer, Source: control.Source_SOURCE_MICROPHONE, By: "Alice", ByPeer: "alice"}
}

// updated awaits an entry of somebody that is as wanted.
func (e *attachStream) updated(id string, wanted func(*control.Peer) bool) *control.Peer {
	e.t.Helper()
	return e.await("an update of "+id, func(e *control.PeerEvent) bool {
		p := e.GetRosterChange().GetUpdated()
		return p.GetId() == id && wanted(p)
	}).GetRosterChange().GetUpdated()
}

func (e *attachStream) mute(muted bool) {
	e.send(&control.PeerMessage{Message: &control.PeerMessage_Mute{Mute: &control.Mute{Source: control.Source_SOURCE_MICROPHONE, Muted: muted}}})
}

func (e *attachStream) raise(raised bool) {
	e.send(&control.PeerMessage{Message: &control.PeerMessage_Hand{Hand: &control.Hand{Raised: raised}}})
}

func handUp(p *control.Peer) bool { return p.GetHandRaisedUnixMs() != 0 }

// TestWhoIsSilencedIsNotForwarded: whatever the client goes on sending, until it unmutes itself.
func TestWhoIsSilencedIsNotForwarded(t *testing.T) {
	s := newStage(t, "one")
	aliceStream, _ := s.attach("room", "alice", 1)
	alice := newMediaClient(t, 'a', false, 2)
	alice.negotiate(aliceStream, nil)
	bobStream, _ := s.attach("room", "bob", 1)
	bob := newMediaClient(t, 'b', true, 2)
	bob.negotiate(bobStream, nil)
	bob.goSend()
	eventually(t, "alice sees and hears bob", func() bool { return alice.sees('b', 20) })
	s.moderate(muting("bob"))
	told := bobStream.await("who silenced him", func(e *control.PeerEvent) bool { return e.GetSilenced() != nil }).GetSilenced()
	if told.GetBy() != "Alice" || told.GetSource() != control.Source_SOURCE_MICROPHONE {
		t.Errorf("bob is told %v", told)
	}
	aliceStream.updated("bob", func(p *control.Peer) bool { return p.GetAudioMuted() && p.GetSilenced() == 1 })
	eventually(t, "silence", func() bool {
		alice.forget()
		heard := func() (sound, picture int) {
			alice.mu.Lock()
			defer alice.mu.Unlock()
			for _, transceiver := range alice.pc.GetTransceivers() {
				if n := alice.shown[transceiver.Mid()]['b']; transceiver.Kind().String() == "audio" {
					sound += n
				} else {
					picture += n
				}
			}
			return sound, picture
		}
		eventually(t, "pictures", func() bool { _, picture := heard(); return picture >= 20 })
		sound, _ := heard()
		return sound == 0
	})
	bobStream.mute(true) // As a client does that is told.
	bobStream.mute(false)
	aliceStream.updated("bob", func(p *control.Peer) bool { return !p.GetAudioMuted() && p.GetSilenced() == 0 })
	eventually(t, "alice hears bob again", func() bool { return alice.sees('b', 20) })
}

func TestASilencedConnectionThatIsReplacedStaysSilent(t *testing.T) {
	s := newStage(t, "one")
	bobStream, _ := s.attach("room", "bob", 1)
	s.moderate(muting("bob"))
	bob := newMediaClient(t, 'b', true, 2)
	bob.negotiate(bobStream, nil)
	bob.goSend()
	eventually(t, "his picture is taken", func() bool { return s.packetsOf("bob", forward.SourceCamera) > 20 })
	if sound := s.packetsOf("bob", forward.SourceMicrophone); sound != 0 {
		t.Errorf("%d packets of his sound were taken, which his new connection does not silence", sound)
	}
}

// packetsOf is how many packets of a source the room's media has taken since the source began; 0 while it has no layer.
func (s *stage) packetsOf(peerID forward.PeerID, source forward.Source) (packets uint64) {
	s.t.Helper()
	s.onLoop("room", func(r *room) {
		for _, l := range r.media.States()[peerID].Layers {
			if l.Source == source {
				packets += l.PacketsIn
			}
		}
	})
	return packets
}

// TestEverybodyIsMutedAtOnce: a large room is told one roster, for no outbox has place for every pair of people.
func TestEverybodyIsMutedAtOnce(t *testing.T) {
	s := newStage(t, "one")
	alice, _ := s.attach("room", "alice", 1)
	var others []*attachStream
	for i := range manyChanges + 1 {
		other, _ := s.attach("room", fmt.Sprintf("p-%02d", i), 1)
		others = append(others, other)
	}
	if reply := s.moderate(muting("")); len(reply.GetDone()) != manyChanges+1 {
		t.Errorf("done to %v", reply.GetDone())
	}
	for _, e := range append(others, alice) {
		roster := e.await("the roster", func(e *control.PeerEvent) bool { return e.GetRoster() != nil }).GetRoster()
		for _, p := range roster.GetPeers() {
			if p.GetAudioMuted() != (p.GetId() != "alice") {
				t.Errorf("told of %v", p)
			}
		}
	}
	others[3].mute(false)
	alice.updated("p-03", func(p *control.Peer) bool { return !p.GetAudioMuted() })
}

func TestWhatAModeratorDoes(t *testing.T) {
	s := newStage(t, "one")
	alice, _ := s.attach("room", "alice", 1, func(a *control.Attach) { a.Peer.Moderator = true })
	bob, _ := s.attach("room", "bob", 1)
	s.attach("room", "spy", 1, func(a *control.Attach) { a.Peer.Hidden = true })
	ask := &control.ModerateRequest{Act: control.Act_ACT_ASK_UNMUTE, Peer: "bob", Source: control.Source_SOURCE_MICROPHONE, By: "Alice"}
	if reply := s.moderate(ask); !slices.Equal(reply.GetDone(), []string{"bob"}) {
		t.Errorf("asked %v", reply)
	}
	if asked := bob.await("the question", func(e *control.PeerEvent) bool { return e.GetUnmuteAsked() != nil }).GetUnmuteAsked(); asked.GetBy() != "Alice" {
		t.Errorf("bob is told %v", asked)
	}
	if reply := s.moderate(ask); len(reply.GetDone()) != 0 || !slices.Equal(reply.GetTooSoon(), []string{"bob"}) {
		t.Errorf("asked again: %v", reply)
	}
	bob.raise(true)
	alice.updated("bob", handUp)
	s.moderate(&control.ModerateRequest{Act: control.Act_ACT_LOWER_HAND, Peer: "bob"})
	alice.updated("bob", func(p *control.Peer) bool { return !handUp(p) })
	s.moderate(&control.ModerateRequest{Act: control.Act_ACT_GRANT, Identity: "bob"})
	bob.updated("bob", func(p *control.Peer) bool { return p.GetModerator() })
	s.moderate(&control.ModerateRequest{Act: control.Act_ACT_GIVE_UP, Peer: "alice"})
	bob.updated("alice", func(p *control.Peer) bool { return !p.GetModerator() })
	for _, nobody := range []string{"spy", "carol"} {
		if reply := s.moderate(&control.ModerateRequest{Act: control.Act_ACT_GRANT, Peer: nobody}); len(reply.GetDone()) != 0 {
			t.Errorf("%s: %v", nobody, reply)
		}
	}
	for _, bad := range []*control.ModerateRequest{
		{Act: control.Act_ACT_GRANT, Peer: "bob"},
		{Room: "room"},
		{Room: "room", Act: 99, Peer: "bob"},
		{Room: "room", Act: control.Act_ACT_GRANT},
		{Room: "room", Act: control.Act_ACT_MUTE},
		{Room: "room", Act: control.Act_ACT_GRANT, Peer: "bob", Identity: "bob"},
	} {
		if _, err := s.client.Moderate(t.Context(), bad); status.Code(err) != codes.InvalidArgument {
			t.Errorf("%v is answered %v", bad, err)
		}
	}
	closed := &control.ModerateRequest{Room: "closed", Act: control.Act_ACT_GRANT, Peer: "bob"}
	if reply, err := s.client.Moderate(t.Context(), closed); err != nil || len(reply.GetDone()) != 0 {
		t.Errorf("a closed room over REST: %v, %v", reply, err)
	}
	closed.ByPeer = "ada"
	if _, err := s.client.Moderate(t.Context(), closed); !control.IsNotOpen(err) {
		t.Errorf("a closed room for somebody in it: %v", err)
	}
}

// TestHandsKeepTheirOrderOnANewNode: also if its clock is behind, and whoever arrives first.
func TestHandsKeepTheirOrderOnANewNode(t *testing.T) {
	const ahead = 4_000_000_000_000
	s := newStage(t, "two")
	hands := []*control.Peer{
		{Id: "bob", Identity: "bob", Name: "bob", HandRaisedUnixMs: ahead + 1, Silenced: 1, AudioMuted: true, Moderator: true},
		{Id: "carol", Identity: "carol", Name: "carol", HandRaisedUnixMs: ahead},
		{Id: "dave", Identity: "dave", Name: "dave"},
	}
	// Dave's signaling node knows nobody, and bob's has forgotten him; carol's knows all.
	dave, _ := s.attach("room", "dave", 2)
	bob, _ := s.attach("room", "bob", 2)
	s.attach("room", "carol", 2, func(a *control.Attach) {
		a.Peer = hands[1]
		a.Expected = hands
	})
	as := func(want *control.Peer) func(*control.Peer) bool {
		return func(p *control.Peer) bool { return sameEntry(want, p) }
	}
	dave.updated("bob", as(hands[0]))
	bob.await("that he is silenced", func(e *control.PeerEvent) bool {
		return e.GetSilenced().GetSource() == control.Source_SOURCE_MICROPHONE
	})
	dave.raise(true)
	if p := dave.updated("dave", handUp); p.GetHandRaisedUnixMs() <= ahead+1 {
		t.Errorf("the last hand is at %d", p.GetHandRaisedUnixMs())
	}
	dave.raise(true) // It is up.
	bob.raise(false)
	dave.updated("bob", func(p *control.Peer) bool { return !handUp(p) })
	// What is older than his own word does not come back.
	_, attached := s.attach("room", "erin", 2, func(a *control.Attach) { a.Expected = hands })
	for _, p := range attached.GetRoster() {
		if p.GetId() == "bob" && handUp(p) {
			t.Error("bob's hand is up again")
		}
	}
}

// TestWhatWasTakenBackStaysSo: what Bob's signaling node remembers, or an earlier token says, does not count.
func TestWhatWasTakenBackStaysSo(t *testing.T) {
	s := newStage(t, "two")
	memory := &control.Peer{Id: "bob", Identity: "bob", Name: "bob", HandRaisedUnixMs: 7, Moderator: true}
	s.attach("room", "alice", 1, func(a *control.Attach) { a.Expected = []*control.Peer{memory} })
	generation := uint64(0)
	attach := func() *control.Peer {
		generation++
		_, attached := s.attach("room", "bob", generation, func(a *control.Attach) { a.Peer = memory })
		return attached.GetRoster()[1]
	}
	act := func(act control.Act) {
		if reply := s.moderate(&control.ModerateRequest{Act: act, Peer: "bob"}); len(reply.GetDone()) != 1 {
			t.Errorf("%v: done to %v", act, reply.GetDone())
		}
	}
	act(control.Act_ACT_LOWER_HAND)
	act(control.Act_ACT_GIVE_UP)
	if p := attach(); p.GetModerator() || handUp(p) {
		t.Errorf("he was only expected when it was taken back, and comes as %v", p)
	}
	if p := attach(); p.GetModerator() {
		t.Error("he attaches again, and runs the room")
	}
	act(control.Act_ACT_GRANT)
	if p := attach(); !p.GetModerator() {
		t.Error("the grant that he was given again is lost")
	}
	act(control.Act_ACT_GIVE_UP)
	r := s.node.rooms["room"]
	if err := r.do(t.Context(), func() { r.people.remove(r.peers["bob"], "did not come back") }); err != nil {
		t.Fatal(err)
	}
	if p := attach(); p.GetModerator() {
		t.Error("he comes back after the grace time, and runs the room")
	}
}

// Who was told elsewhere not to run the room any more does not run it here by an earlier token, whoever arrives first; what was
// decided here since counts more than what others remember.
func TestATakenBackGrantIsRememberedByOthers(t *testing.T) {
	s := newStage(t, "two")
	byToken := func(a *control.Attach) { a.Peer.Moderator = true }
	remembers := func(moderator bool, at int64) func(*control.Attach) {
		return func(a *control.Attach) {
			a.Expected = []*control.Peer{{Id: "bob", Identity: "bob", Name: "bob", Moderator: moderator, GrantJudgedUnixMs: at}}
		}
	}
	s.attach("room", "alice", 1, remembers(false, 5))
	if _, attached := s.attach("room", "bob", 1, byToken); attached.GetRoster()[1].GetModerator() {
		t.Error("he comes after who remembers it, and runs the room")
	}
	if _, attached := s.attach("room", "bob", 2, byToken); attached.GetRoster()[1].GetModerator() {
		t.Error("he attaches again, and runs the room")
	}

	s = newStage(t, "three")
	bob, _ := s.attach("room", "bob", 1, byToken)
	bob.raise(true)
	bob.updated("bob", handUp)
	s.attach("room", "alice", 1, remembers(false, 5))
	if p := bob.updated("bob", func(p *control.Peer) bool { return !p.GetModerator() }); !handUp(p) || p.GetGrantJudgedUnixMs() != 5 {
		t.Errorf("he came before who remembers it, and is %v", p)
	}
	s.moderate(&control.ModerateRequest{Act: control.Act_ACT_GRANT, Peer: "bob"})
	granted := bob.updated("bob", func(p *control.Peer) bool { return p.GetModerator() })
	_, attached := s.attach("room", "carol", 1, remembers(false, 6))
	for _, p := range attached.GetRoster() {
		if p.GetId() == "bob" && (!p.GetModerator() || p.GetGrantJudgedUnixMs() != granted.GetGrantJudgedUnixMs()) {
			t.Errorf("an old memory takes the grant back: %v", p)
		}
	}
}
