package signaling

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/people/roster"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/signaling/access"
	"github.com/holdfast-rtc/holdfast/signaling/rest"
)

// fakeRosters is a store that knows one room.
type fakeRosters struct {
	found roster.Room
	err   error
}

func (f *fakeRosters) Roster(_ context.Context, room ring.RoomID) (roster.Room, error) {
	if room != "a/b" {
		return roster.Room{In: f.found.In}, f.err
	}
	return f.found, f.err
}

func TestRosterIsAnsweredByGrant(t *testing.T) {
	r, n, _ := lobby(t)
	at, in := time.UnixMilli(1769000000000), pin.Incarnation(5)
	store := &fakeRosters{found: roster.Room{
		Pin: n.pin(firstEpoch), Current: true, In: in, AsOf: at,
		Peers: []roster.Peer{
			{ID: "p1", Identity: "ada", Name: "Ada", Since: at},
			{ID: "p2", Identity: "ada", Name: "Ada", Since: at.Add(time.Second)},
			{ID: "p3", Identity: "spy", Hidden: true, Since: at},
		},
		Left: []roster.Leave{{Peer: roster.Peer{Identity: "bob", Name: "Bob"}, LastSeen: at}},
	}}
	r.prepare = func(s *Server) { s.parts.Rosters = store }
	e := r.signalingNode(nil)
	synced := func(yes bool) {
		node := r.views.View().Nodes["sfu-1"]
		node.Load.Synced, node.Suspect, node.Unreachable = "", false, false
		if yes {
			node.Load.Synced = pin.IncarnationsOf([]pin.Incarnation{in})
		}
		r.views.add(node)
	}
	owner := func(change func(*cluster.Node)) func() {
		return func() {
			node := r.views.View().Nodes["sfu-1"]
			change(&node)
			r.views.add(node)
		}
	}
	synced(true)
	guest := r.mint(access.Everything("eve", "a/b"), time.Hour)
	admin := r.mint(access.Grant{Identity: "root", Room: "a/b", RoomAdmin: true}, time.Hour)
	operator := r.mint(access.Operator("root"), time.Hour)
	const whole = `{"room":"a/b","node":"sfu-1","state":"current","people":[{"identity":"ada","name":"Ada","peers":["p1","p2"],"since":1769000000000},` +
		`{"identity":"spy","peers":["p3"],"since":1769000000000,"hidden":true}],"left":[{"identity":"bob","name":"Bob","lastSeen":1769000000000}],"asOf":1769000000000}`
	for token, want := range map[string]string{
		guest: `{"room":"a/b","state":"current","people":[{"identity":"ada","name":"Ada","since":1769000000000}],"asOf":1769000000000}`,
		admin: whole, operator: whole,
	} {
		if status, body, _ := e.get("/api/v1/rooms/a%2Fb/roster", token); status != http.StatusOK || strings.TrimSpace(body) != want {
			t.Errorf("answered %d %s, want %s", status, body, want)
		}
	}
	for _, token := range []string{"", r.mint(access.Everything("eve", "other"), time.Hour)} {
		if status, body, _ := e.get("/api/v1/rooms/a%2Fb/roster", token); status != http.StatusUnauthorized && status != http.StatusForbidden {
			t.Errorf("somebody is answered %d %s", status, body)
		}
	}
	for name, c := range map[string]struct {
		change func()
		room   string
		want   string
	}{
		"the owner has yet to write":  {func() { store.found.Current = false }, "a%2Fb", rest.RosterSettling},
		"the owner is another boot":   {func() { store.found.Pin.Boot = "0-old" }, "a%2Fb", rest.RosterSettling},
		"the store lost its memory":   {func() { synced(false) }, "a%2Fb", rest.RosterSettling},
		"the owner may be dead":       {owner(func(n *cluster.Node) { n.Suspect = true }), "a%2Fb", rest.RosterSettling},
		"the owner is not heard here": {owner(func(n *cluster.Node) { n.Unreachable = true }), "a%2Fb", rest.RosterSettling},
		"nobody is there":             {func() {}, "empty", rest.RosterCurrent},
		"nobody, says a new store":    {func() { synced(false) }, "empty", rest.RosterUnknown},
		"the store is away":           {func() { store.err = errors.New("away") }, "a%2Fb", rest.RosterUnknown},
	} {
		good := *store
		c.change()
		_, body, _ := e.get("/api/v1/rooms/"+c.room+"/roster", operator)
		var answer rest.RosterAnswer
		if err := json.Unmarshal([]byte(body), &answer); err != nil || answer.State != c.want || answer.People == nil {
			t.Errorf("%s: %s, %v, want %s", name, body, err, c.want)
		}
		*store = good
		synced(true)
	}
}
