package signaling

import (
	"fmt"
	"slices"
	"testing"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/signaling/access"
	"github.com/holdfast-rtc/holdfast/signaling/sfulink"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// unlistedSession is a session of somebody of the audience, five in all, in a room whose roster has the host. Its client is an older one.
func unlistedSession(t *testing.T, s *Server, peer string) *session {
	t.Helper()
	k := &socket{log: s.log, writing: true, end: func(err error) { t.Error(err) }}
	told := &session{
		server: s, socket: k, log: s.log, who: access.Session{Room: "lobby", Peer: peer, Identity: peer}, line: &line{},
		pin: pin.Pin{Fence: pin.Fence{Epoch: 4}, Node: "sfu-1"}, drop: func() {}, seat: seat{socket: k}, unjudge: func() {},
		link: &sfulink.Link{Seq: 50, Attached: &control.Attached{
			Run: 7, Roster: []*control.Peer{{Id: "host"}}, Own: &control.Peer{Id: peer, Unlisted: true}, Audience: 5,
		}},
	}
	told.beginRoster()
	return told
}

func peersOf(roster wire.List[wire.Peer]) (ids []wire.PeerID) {
	for _, p := range roster {
		ids = append(ids, p.Peer)
	}
	return ids
}

func joinedChanges(t *testing.T, ids ...string) []byte {
	t.Helper()
	var changes []*control.RosterChange
	for _, id := range ids {
		changes = append(changes, &control.RosterChange{Change: &control.RosterChange_Joined{Joined: &control.Peer{Id: id}}})
	}
	encoded, err := control.EncodeRosterChanges(changes)
	if err != nil {
		t.Fatal(err)
	}
	return encoded
}

// lastSent is the newest message that waits for the client; nil if there is none.
func lastSent(t *testing.T, s *session) wire.Message {
	t.Helper()
	if len(s.socket.out) == 0 {
		return nil
	}
	m, err := wire.DecodeServer(s.socket.out[len(s.socket.out)-1])
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Somebody of the audience shares the roster with everybody, and is told of itself in it.
func TestAnUnlistedPersonSeesItself(t *testing.T) {
	s, _ := loneServer(t)
	one, two := unlistedSession(t, s, "one"), unlistedSession(t, s, "two")
	if one.known.roster != two.known.roster {
		t.Error("the roster is kept twice")
	}
	if ids := peersOf(one.wireRoster(one.known.roster)); !slices.Equal(ids, []wire.PeerID{"host", "one"}) || one.sayAudience() != 4 {
		t.Errorf("the client is told of %v", ids)
	}
	if o := one.opening(one.pin); !o.Peer.GetUnlisted() || o.Expect.People != 6 {
		t.Errorf("the next node is told of %v, %+v", o.Peer, o.Expect)
	}
	var many []string
	for i := range changesByOne + 1 {
		many = append(many, fmt.Sprint("q-", i))
	}
	for _, who := range []*session{one, two} {
		who.rosterChanged(joinedChanges(t, many...), 67)
		roster, is := lastSent(t, who).(*wire.Roster)
		if !is || !slices.Contains(peersOf(roster.Roster), wire.PeerID(who.who.Peer)) || len(roster.Roster) != changesByOne+3 {
			t.Errorf("%s is told %+v", who.who.Peer, roster)
		}
	}
}

// The client is told of the others in the audience only, and nothing twice.
func TestTheAudienceIsTold(t *testing.T) {
	s, _ := loneServer(t)
	one := unlistedSession(t, s, "one")
	one.sayAudience()
	if one.setAudience(5); lastSent(t, one) != nil {
		t.Errorf("the client is told again: %v", lastSent(t, one))
	}
	one.setAudience(6)
	if m, is := lastSent(t, one).(*wire.Audience); !is || m.Others != 5 || m.Epoch != 4 {
		t.Errorf("the client is told %+v", m)
	}
	one.rosterChanged(joinedChanges(t, "one"), 51)
	if m, is := lastSent(t, one).(*wire.PeerJoined); !is || m.Peer.Peer != "one" {
		t.Errorf("who is listed is told %+v", m)
	}
	before := len(one.socket.out)
	if one.setAudience(5); len(one.socket.out) != before || one.opening(one.pin).Peer.GetUnlisted() {
		t.Error("who is listed counts itself in the audience")
	}
	if ids := peersOf(one.wireRoster(one.known.roster)); !slices.Equal(ids, []wire.PeerID{"host", "one"}) {
		t.Errorf("the roster is %v", ids)
	}
}
