package chaos

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/backoff"
)

// Roster is a room's people, by a signaling node that reads the store.
type Roster struct {
	State  string
	People []RosterPerson
}

// RosterPerson is somebody in a Roster.
type RosterPerson struct{ Identity string }

const (
	current  = "current"
	settling = "settling"
	// Rosters are right rosterLimit after the cluster is whole: a refresh of the pins and a write.
	rosterLimit = 6 * time.Second
	// Who has left may be shown until the next write.
	leaveShows = 2 * time.Second

	guestName = "guest"
)

func (r Roster) has(who string) bool {
	return slices.Contains(r.People, RosterPerson{who})
}

// Unanswered rooms are missing.
func (c *Chaos) askRosters(ctx context.Context, l *Look, rooms ...string) {
	l.Rosters = make(map[string]Roster)
	for _, room := range rooms {
		var r Roster
		if c.cluster.AdminAt(ctx, c.page, "rooms/"+url.PathEscape(room)+"/roster", &r) == nil {
			l.Rosters[room] = r
		}
	}
}

// present is who stays in each room all the trial. The tabs' identities are unknown.
func (c *crowd) present() map[string][]string {
	people := make(map[string][]string)
	for _, p := range c.people {
		people[p.room] = append(people[p.room], p.name)
	}
	return people
}

// visit adds a guest to every second room without a cap, waits until the rosters show everybody, and has the guests leave before the fault.
func (c *Chaos) visit(ctx context.Context, w *World) error {
	var rooms []string
	for i, room := range slices.Sorted(maps.Keys(w.People)) {
		if i%2 == 1 || room == c.crowd.capped {
			continue
		}
		if err := c.crowd.add(&person{room: room, name: guestName, people: 1}); err != nil { //nolint:contextcheck // as in crowd.open
			return err
		}
		rooms = append(rooms, room)
	}
	defer c.crowd.dismiss()
	return poll(ctx, max(c.options.patience.settle, 2*rosterLimit), func() error {
		var l Look
		c.askRosters(ctx, &l, slices.Collect(maps.Keys(w.People))...)
		for room, people := range w.People {
			for _, who := range people {
				if !l.Rosters[room].has(who) {
					return fmt.Errorf("%s is not in the roster of %s: %+v", who, room, l.Rosters[room])
				}
			}
		}
		for _, room := range rooms {
			if !l.Rosters[room].has(guestName) {
				return fmt.Errorf("the guest is not in the roster of %s: %+v", room, l.Rosters[room])
			}
		}
		return nil
	})
}

// awaitRosters waits until all rosters are right, and stores the last ones in w.After.
func (c *Chaos) awaitRosters(ctx context.Context, w *World) {
	_ = poll(ctx, rosterLimit, func() error { // the verdicts say what is wrong
		c.askRosters(ctx, &w.After, slices.Collect(maps.Keys(w.People))...)
		if missing, gone := NobodyMissing(w), NobodyGone(w); missing.Outcome != Kept || gone.Outcome != Kept {
			return fmt.Errorf("%s %s", missing.first(), gone.first())
		}
		return nil
	})
}

// askSome asks for one room at a time, and the capped one: all would keep the nodes busy.
func (c *Chaos) askSome(ctx context.Context, w *World, l *Look, n int) {
	if rooms := slices.Sorted(maps.Keys(w.People)); len(rooms) > 0 {
		c.askRosters(ctx, l, rooms[n%len(rooms)], c.crowd.capped)
	}
}

// NobodyMissing compares rosters with the people who stayed.
func NobodyMissing(w *World) Verdict {
	v := verdict("nobody is missing who is here", fmt.Sprintf("a roster that the store calls current has everybody who is in the room, and each is current %s after the cluster is whole, or settling, with everybody: a room that moved waits 30 s for who left just before it did", rosterLimit))
	for room, people := range w.People {
		r := w.After.Rosters[room]
		if whole := !slices.ContainsFunc(people, func(who string) bool { return !r.has(who) }); r.State != current && (r.State != settling || !whole) {
			v.broken("in the end the roster of %s is %q", room, r.State)
		}
	}
	judgeRosters(w, v, func(_, _ bool, room string, r Roster) {
		for _, who := range w.People[room] {
			if !r.has(who) {
				v.broken("%s is in %s, and its roster has %v", who, room, r.People)
			}
		}
	})
	return *v
}

// NobodyGone looks for people who left, such as guests.
func NobodyGone(w *World) Verdict {
	v := verdict("nobody is shown who is gone", fmt.Sprintf("a roster that the store calls current has nobody who left more than %s ago", leaveShows))
	judgeRosters(w, v, func(meanwhile, atOnce bool, room string, r Roster) {
		for _, p := range r.People {
			if !slices.Contains(w.People[room], p.Identity) && (!atOnce || p.Identity != guestName) && (!meanwhile || !isNewcomer(p.Identity)) {
				v.broken("%s is gone, and in the roster of %s", p.Identity, room)
			}
		}
	})
	return *v
}

// judgeRosters calls judge for each current roster. meanwhile: newcomers may be there; atOnce: a guest may still be shown.
func judgeRosters(w *World, v *Verdict, judge func(meanwhile, atOnce bool, room string, r Roster)) {
	asked := 0
	for i, l := range append(slices.Clone(w.Between), w.After) {
		for room, r := range l.Rosters {
			if r.State == current {
				asked++
				judge(i < len(w.Between), i < len(w.Between) && l.At.Sub(w.first()) <= leaveShows, room, r)
			}
		}
	}
	if asked == 0 {
		v.unchecked("no roster was read")
	}
}

func (c *crowd) dismiss() {
	c.people = slices.DeleteFunc(c.people, func(p *person) bool {
		if p.name == guestName {
			p.leave()
		}
		return p.name == guestName
	})
	backoff.Sleep(c.living, 100*time.Millisecond) // the leaves are on their way
}
