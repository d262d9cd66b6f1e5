package signaling

import (
	"errors"
	"fmt"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/signaling/access"
	"github.com/holdfast-rtc/holdfast/signaling/replica"
	"github.com/holdfast-rtc/holdfast/signaling/sfulink"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// One event has several changes: a client that knows roster-changes gets them as one message, an older one each, with numbers by which it
// leaves out what it has.
func TestSeveralChangesOfTheRoster(t *testing.T) {
	s, _ := loneServer(t)
	for name, tc := range map[string]struct {
		knows   bool
		joins   int
		want    []wire.Type
		lastSeq uint64
	}{
		"one":                       {true, 1, []wire.Type{"peer-joined"}, 100},
		"three":                     {true, 3, []wire.Type{"roster-changes"}, 100},
		"three for an older client": {false, 3, []wire.Type{"peer-joined", "peer-joined", "peer-joined"}, 100},
		"many for an older client":  {false, changesByOne + 1, []wire.Type{"roster"}, 100},
	} {
		t.Run(name, func(t *testing.T) {
			k := &socket{log: s.log, writing: true, end: func(err error) { t.Error(err) }}
			told := &session{
				server: s, socket: k, log: s.log, who: access.Session{Room: "lobby", Peer: "p-1", Identity: "ada"}, takesRosterChanges: tc.knows,
				pin: pin.Pin{Fence: pin.Fence{Epoch: 4}, Node: "sfu-1"}, drop: func() {}, seat: seat{socket: k}, unjudge: func() {},
				link: &sfulink.Link{Seq: 50, Attached: &control.Attached{Run: uint64(len(name)), Roster: []*control.Peer{{Id: "p-1"}}}},
			}
			told.beginRoster()
			changes := &control.RosterChanges{}
			for i := range tc.joins {
				changes.Changes = append(changes.Changes, &control.RosterChange{Change: &control.RosterChange_Joined{Joined: &control.Peer{Id: fmt.Sprint("q-", i)}}})
			}
			encoded, err := proto.Marshal(changes)
			if err != nil {
				t.Fatal(err)
			}
			// What the link began with has the changes up to its number.
			told.rosterChanged(encoded, 50)
			if len(k.out) != 0 {
				t.Fatalf("the client is told again: %s", k.out)
			}
			told.setRoster(replica.Of([]*control.Peer{{Id: "p-1"}}))
			told.rosterChanged(encoded, tc.lastSeq)
			if len(told.known.roster.Peers()) != 1+tc.joins || told.expect().People != 1+tc.joins {
				t.Errorf("the session knows %v", told.known.roster.Peers())
			}
			if len(k.out) != len(tc.want) {
				t.Fatalf("the client is told %s", k.out)
			}
			for i, frame := range k.out {
				m, err := wire.DecodeServer(frame)
				if err != nil {
					t.Fatal(err)
				}
				var seq uint64
				switch m := m.(type) {
				case *wire.PeerJoined:
					seq = m.Seq
				case *wire.RosterChanges:
					seq = m.Seq
					if len(m.Entries) != tc.joins || len(m.Left) != 0 || m.Epoch != 4 {
						t.Errorf("%s", frame)
					}
				case *wire.Roster:
					seq = m.Seq
				}
				if want := tc.lastSeq - uint64(len(k.out)-1-i); wire.TypeOf(m) != tc.want[i] || seq != want {
					t.Errorf("message %d is %s, want %s of number %d", i, frame, tc.want[i], want)
				}
			}
		})
	}
}

// A roster may be larger than what else waits for a client: it goes out alone, and what comes after it is bounded.
func TestOneLargeMessageIsSent(t *testing.T) {
	var ended error
	k := &socket{writing: true, end: func(err error) { ended = err }}
	large := make([]byte, outgoingBytes+1)
	k.queue(large)
	if len(k.out) != 1 || ended != nil {
		t.Fatalf("%d messages wait, and the session ends: %v", len(k.out), ended)
	}
	if k.queue(large); len(k.out) != 1 || !errors.Is(ended, errSlow) {
		t.Errorf("after a second one %d messages wait, and the session ends: %v", len(k.out), ended)
	}
}
