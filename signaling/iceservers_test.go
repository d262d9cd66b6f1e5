package signaling

import (
	"strings"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// TestICEServersAreOfTheIdentity: with the join, when asked for, and with a resume on a node that has others.
func TestICEServersAreOfTheIdentity(t *testing.T) {
	with := func(url string) func(*Config) {
		return func(c *Config) {
			c.ICEServers = func(session string, _, _ time.Time) ([]wire.ICEServer, time.Duration) {
				return []wire.ICEServer{{URLs: []string{url}, Username: session}}, time.Hour
			}
		}
	}
	r, _, e := lobbyWith(t, with("turn:one"))
	ada, joined := e.join("lobby", "Ada")
	session := joined.ICEServers.ICEServers[0].Username
	_, again := e.join("lobby", "Ada")
	_, grace := e.join("lobby", "Grace")
	if again.ICEServers.ICEServers[0].Username != session || grace.ICEServers.ICEServers[0].Username == session {
		t.Error("the limits of the relay are not those of an identity: each join is another session")
	}
	if strings.Contains(session, joined.Identity) || strings.Contains(session, ":") {
		t.Errorf("the relay knows the session as %q", session)
	}
	is := func(got wire.ICEServers, url string) {
		t.Helper()
		if len(got.ICEServers) != 1 || got.ICEServers[0].URLs[0] != url || got.ICEServers[0].Username != session || got.ForMs != time.Hour.Milliseconds() {
			t.Errorf("given %+v", got)
		}
	}
	is(joined.ICEServers, "turn:one")
	ada.say(&wire.AskICEServers{})
	is(*waitFor[*wire.ICEServers](ada), "turn:one")
	none := e.dial()
	none.say(&wire.Connect{Token: r.token("", "Bob")})
	hear[*wire.Connected](none)
	e.RenewICEServers()
	is(*waitFor[*wire.ICEServers](ada), "turn:one")
	for range 5 {
		none.say(&wire.Ping{T: 1})
		if said, ok := none.next().(*wire.Pong); !ok {
			t.Errorf("a connection in no room hears %+v", said)
		}
	}
	two := r.signalingNode(with("turn:two")).dial()
	two.say(&wire.Resume{Resume: joined.Resume, Attempt: 2})
	is(hear[*wire.Resumed](two).ICEServers, "turn:two")
}
