package waitlist

import (
	"cmp"
	"sync"
	"time"

	"github.com/holdfast-rtc/holdfast/ring"
)

// Word is what a waiting person is told.
type Word struct {
	// Code is Gone, LetIn or TurnedAway, or else the person's position.
	Code  int
	Place Place
}

// Member is one waiting person in a List. Cap and Usual are those of the person's Entry.
type Member struct {
	Room     ring.RoomID
	Identity string
	Cap      int
	Usual    int
	// Tell must not block. It is told each place once.
	Tell func(Word)

	told Word
}

// List has the waiting people of one node. It is safe for concurrent use.
type List struct {
	// Dead reports whether a pin names a dead media node. Its people keep their places for Grace.
	Dead  func(pin string) bool
	Grace time.Duration

	mu    sync.Mutex
	rooms map[ring.RoomID]*line
}

type line struct {
	people map[*Member]struct{}
	roster string
	owing  string
	// since is when owing was first seen.
	since time.Time
	// dead is when the media node was first found dead. It is zero while the node lives.
	dead time.Time
}

// Add puts a person into the list. place is the place that the person has been told.
func (l *List) Add(w *Member, place Place) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.rooms == nil {
		l.rooms = make(map[ring.RoomID]*line)
	}
	if l.rooms[w.Room] == nil {
		l.rooms[w.Room] = &line{people: make(map[*Member]struct{})}
	}
	w.told = Word{Code: place.Position, Place: place}
	l.rooms[w.Room].people[w] = struct{}{}
}

// Remove takes a person out of the list. It returns whether this was the last entry of the identity here.
func (l *List) Remove(w *Member) (last bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	room := l.rooms[w.Room]
	if room == nil {
		return true
	}
	delete(room.people, w)
	if len(room.people) == 0 {
		delete(l.rooms, w.Room)
	}
	for other := range room.people {
		if other.Identity == w.Identity {
			return false
		}
	}
	return true
}

// Len returns how many people wait.
func (l *List) Len() (people int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, room := range l.rooms {
		people += len(room.people)
	}
	return people
}

// Asked returns for each room what the store is to be asked about its waiting people.
func (l *List) Asked(now time.Time) []Asked {
	l.mu.Lock()
	defer l.mu.Unlock()
	asked := make([]Asked, 0, len(l.rooms))
	for id, room := range l.rooms {
		one := Asked{Room: id, Cap: NoCap, Dead: room.deadPin(now, l)}
		seen := make(map[string]struct{}, len(room.people))
		for w := range room.people {
			one.Usual = w.Usual
			if w.Cap != NoCap && (one.Cap == NoCap || w.Cap < one.Cap) {
				one.Cap = w.Cap
			}
			if _, twice := seen[w.Identity]; !twice {
				seen[w.Identity] = struct{}{}
				one.Who = append(one.Who, w.Identity)
			}
		}
		asked = append(asked, one)
	}
	return asked
}

func (r *line) deadPin(now time.Time, l *List) string {
	last := cmp.Or(r.owing, r.roster)
	switch {
	case last == "" || !l.Dead(last):
		r.dead = time.Time{}
	case r.dead.IsZero():
		r.dead = now
	case now.Sub(r.dead) > l.Grace:
		return last
	}
	return ""
}

// Owed names a room whose media node has not written the roster that the store needs.
type Owed struct {
	Room ring.RoomID
	Pin  string
	// Over says that the grace time is over.
	Over bool
}

// A living media node writes its rosters sooner than this.
const owesAfter = 3 * time.Second

// Owing lists the rooms whose media nodes should have written their rosters by now.
func (l *List) Owing(now time.Time) (list []Owed) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, room := range l.rooms {
		switch {
		case room.owing == "":
		case room.since.IsZero():
			room.since = now
		case now.Sub(room.since) >= owesAfter:
			list = append(list, Owed{Room: id, Pin: room.owing, Over: now.Sub(room.since) > l.Grace})
		}
	}
	return list
}

// Heard tells the waiting people the store's answers.
func (l *List) Heard(asked []Asked, answers []Checked) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, answer := range answers {
		room := l.rooms[answer.Room]
		if answer.Err != nil || room == nil || len(answer.Places) != len(asked[i].Who) {
			continue
		}
		if room.roster != answer.Roster || room.owing != answer.Owing {
			room.roster, room.owing, room.since, room.dead = answer.Roster, answer.Owing, time.Time{}, time.Time{}
		}
		places := make(map[string]int, len(answer.Places))
		for n, who := range asked[i].Who {
			places[who] = answer.Places[n]
		}
		for w := range room.people {
			code, ok := places[w.Identity]
			if !ok {
				continue
			}
			word := Word{Code: code, Place: Place{Position: max(code, 0), Reason: answer.Reason, Pace: answer.Pace}}
			if code > 0 && w.told.Place.Position == code && w.told.Place.Reason == answer.Reason && answer.Reason != NoCapacity {
				continue
			}
			w.told = word
			w.Tell(word)
		}
	}
}
