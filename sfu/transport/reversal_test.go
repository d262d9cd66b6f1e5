package transport

import (
	"net/netip"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/sfu/egress"
)

// TestAWokenNodeDoesNotNominate: after a pause in which another node may have gone on with the connection, the client is left alone for a while.
func TestAWokenNodeDoesNotNominate(t *testing.T) {
	now := time.Now()
	r := reversal{wanted: true, answers: reversedAfter}
	if r.wakes(now) {
		t.Error("the first look follows no pause")
	}
	if now = now.Add(notLooked - time.Millisecond); r.wakes(now) {
		t.Error("looks may be a little late")
	}
	if now = now.Add(notLooked); !r.wakes(now) {
		t.Error("a pause is not noticed")
	}
	if now = now.Add(time.Millisecond); r.wakes(now) {
		t.Error("one pause counts twice")
	}
	// A node that goes on with another's connection has to nominate itself, however slow it is.
	r.answers = 0
	if now = now.Add(time.Minute); r.wakes(now) {
		t.Error("a client that does not follow yet is left alone")
	}
}

// TestAFollowerIsNominatedAfterARestart: a client that stays the controlled end in a restart of ICE waits for a nomination by this node.
func TestAFollowerIsNominatedAfterARestart(t *testing.T) {
	transport, w := newTransport(t)
	c := newClient(t, transport, w, "alice").conn
	c.Reverse()
	before := c.Credentials().Ufrag
	c.Restart("more", "more-of-a-password")
	there, now := egress.UDP(netip.MustParseAddrPort("198.51.100.1:9")), time.Now()
	for _, other := range []said{{user: before, follows: true}, {user: c.Credentials().Ufrag}} {
		if back, wanted := c.checked(there, other, now); wanted && back.role == nominating {
			t.Errorf("%+v is nominated", other)
		}
	}
	back, wanted := c.checked(there, said{user: c.Credentials().Ufrag, follows: true}, now)
	if !wanted || back.role != nominating || back.to != there || back.remote.ufrag != "more" {
		t.Fatalf("a follower gets %+v", back)
	}
	c.answered(there, now, back.id, func(password string) bool { return password == "more-of-a-password" })
	if used := c.selected.Load(); *used != there || !c.nominated {
		t.Errorf("media goes to %v", used)
	}
}
