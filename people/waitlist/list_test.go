package waitlist

import (
	"slices"
	"testing"
	"time"
)

func asks(l *List, now time.Time) Asked {
	all := l.Asked(now)
	if len(all) != 1 {
		return Asked{}
	}
	slices.Sort(all[0].Who)
	return all[0]
}

// A person is told of each place once, whatever the store repeats, and nothing while it is silent.
func TestPlacesAreToldOnce(t *testing.T) {
	var told []int
	l := &List{Dead: func(string) bool { return false }}
	ann := &Member{Room: "r", Identity: "ann", Cap: 2, Tell: func(w Word) { told = append(told, w.Code) }}
	l.Add(ann, Place{Position: 3, Reason: Full})
	l.Add(&Member{Room: "r", Identity: "ann", Cap: 5, Tell: func(Word) {}}, Place{Position: 3, Reason: Full})
	for _, place := range []int{3, 3, 2, 2, 1, LetIn} {
		asked := l.Asked(time.Now())
		if got := asked[0]; got.Cap != 2 || !slices.Equal(got.Who, []string{"ann"}) {
			t.Fatalf("asks %+v, want ann once", got)
		}
		l.Heard(asked, []Checked{{Room: "r", Reason: Full, Places: []int{place}}})
		l.Heard(asked, []Checked{{Room: "r", Err: ErrDoor}})
	}
	if want := []int{2, 1, LetIn}; !slices.Equal(told, want) {
		t.Errorf("ann was told %v, want %v", told, want)
	}
	if l.Remove(ann) || l.Len() != 1 {
		t.Errorf("ann waits in another tab, and %d wait", l.Len())
	}
}

// Only a roster whose node has been dead for the whole grace time is named to the store.
func TestDeadRosterIsNamedAfterTheGraceTime(t *testing.T) {
	dead := false
	l := &List{Dead: func(string) bool { return dead }, Grace: 30 * time.Second}
	l.Add(&Member{Room: "r", Identity: "ann", Tell: func(Word) {}}, Place{Position: 1})
	now := time.Unix(1000, 0)
	heard := func(roster string) {
		l.Heard(l.Asked(now), []Checked{{Room: "r", Roster: roster, Places: []int{1}}})
	}
	heard("a")
	for _, step := range []struct {
		after time.Duration
		dead  bool
		next  string
		want  string
	}{{0, true, "a", ""}, {29, true, "a", ""}, {2, true, "a", "a"}, {1, true, "b", "a"}, {1, true, "b", ""}, {31, false, "b", ""}, {1, true, "b", ""}} {
		now, dead = now.Add(step.after*time.Second), step.dead
		if got := asks(l, now).Dead; got != step.want {
			t.Errorf("at %d the dead roster is %q, want %q", now.Unix(), got, step.want)
		}
		heard(step.next)
	}
}

// A media node that owes a roster is asked after a while. That nobody of an earlier owner can come is known after the grace time.
func TestOwingIsListedAfterAWhile(t *testing.T) {
	l := &List{Dead: func(pin string) bool { return pin == "c" }, Grace: 30 * time.Second}
	l.Add(&Member{Room: "r", Identity: "ann", Tell: func(Word) {}}, Place{Position: 1})
	now := time.Unix(1000, 0)
	for _, step := range []struct {
		after time.Duration
		owing string // in the answer that follows
		want  []Owed
		dead  string
	}{
		{0, "b", nil, ""},
		{1, "b", nil, ""},
		{3, "b", []Owed{{"r", "b", false}}, ""},
		{30, "b", []Owed{{"r", "b", true}}, ""},
		{1, "", []Owed{{"r", "b", true}}, ""},
		{1, "c", nil, ""},
		{1, "c", nil, ""},
		{31, "c", []Owed{{"r", "c", true}}, "c"},
	} {
		now = now.Add(step.after * time.Second)
		if got := l.Owing(now); !slices.Equal(got, step.want) {
			t.Errorf("at %d these owe: %v, want %v", now.Unix(), got, step.want)
		}
		if got := asks(l, now).Dead; got != step.dead {
			t.Errorf("at %d the dead pin is %q, want %q", now.Unix(), got, step.dead)
		}
		l.Heard(l.Asked(now), []Checked{{Room: "r", Roster: "a", Owing: step.owing, Places: []int{1}}})
	}
}

func TestEstimateHasABasis(t *testing.T) {
	for _, c := range []struct {
		pace     Pace
		position int
		want     time.Duration
	}{
		{Pace{}, 1, 0},
		{Pace{Left: 2, Since: time.Minute}, 1, 0},
		{Pace{Left: 3, Since: time.Minute}, 1, 20 * time.Second},
		{Pace{Left: 3, Since: time.Minute}, 4, 80 * time.Second},
		{Pace{Left: 3, Since: time.Hour}, 4, 80 * time.Minute},
		{Pace{Left: 3}, 1, 0},
		{Pace{Left: 3, Since: time.Minute}, 0, 0},
	} {
		if got := c.pace.Estimate(c.position); got != c.want {
			t.Errorf("position %d at %+v waits %v, want %v", c.position, c.pace, got, c.want)
		}
	}
}
