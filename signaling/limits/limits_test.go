package limits

import (
	"net/netip"
	"testing"
	"testing/synctest"
	"time"
)

// TestEveryActHasItsBurstAndItsRate: each act passes as often at once as its burst says, and after a second as often as its
// rate says. Another person's acts are counted apart.
func TestEveryActHasItsBurstAndItsRate(t *testing.T) {
	ada := Person{Room: "lobby", Key: "APIkey", Identity: "ada"}
	bob := Person{Room: "hall", Key: "APIkey", Identity: "bob"}
	for name, tc := range map[string]struct {
		act       func(*Limits, Person) bool
		perSecond float64
		burst     int
	}{
		"attempt":         {(*Limits).Attempt, attemptsPerSecond, attemptBurst},
		"enter":           {(*Limits).Enter, 2, 20},
		"reserve":         {(*Limits).Reserve, 0.2, 4},
		"chat":            {(*Limits).Chat, chatPerSecond, ChatBurst},
		"express":         {(*Limits).Express, expressionsPerSecond, expressionBurst},
		"moderate":        {(*Limits).Moderate, actsPerSecond, actBurst},
		"ask to unmute":   {(*Limits).AskUnmute, unmutesPerSecond, unmuteBurst},
		"door":            {(*Limits).Door, doorsPerSecond, doorBurst},
		"test connection": {(*Limits).TestConnection, testsPerSecond, TestBurst},
		"direct message":  {(*Limits).Direct, directsPerSecond, DirectBurst},
		"watch":           {(*Limits).Watch, watchesPerSecond, WatchBurst},
		"ask about room":  {func(l *Limits, p Person) bool { return l.AskAboutRoom(p.Room) }, roomQuestionsPerSecond, RoomQuestionBurst},
		"read a roster":   {func(l *Limits, p Person) bool { return l.ReadRoster(p.Identity) }, roomQuestionsPerSecond, RoomQuestionBurst},
		"send a notice":   {func(l *Limits, p Person) bool { return l.SendNotice(p.Identity) }, roomQuestionsPerSecond, RoomQuestionBurst},
		"ask an owner":    {func(l *Limits, p Person) bool { return l.AskOwner(p.Room) }, 0.3, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := New(DefaultConfig())
				passed := func(p Person) (n int) {
					for ; n < 1000 && tc.act(l, p); n++ {
					}
					return n
				}
				if got := passed(ada); got != tc.burst {
					t.Errorf("%d pass at once, want %d", got, tc.burst)
				}
				if got := passed(bob); got != tc.burst {
					t.Errorf("%d of another person pass at once, want %d", got, tc.burst)
				}
				const rest = 20 * time.Second
				<-time.After(rest)
				if got, want := passed(ada), min(int(rest.Seconds()*tc.perSecond), tc.burst); got != want {
					t.Errorf("%d pass after %v, want %d", got, rest, want)
				}
			})
		})
	}
}

// TestAFullQuotaTakesNothingFromTheOthers: what one of a person's quotas refuses is not charged to the person's others.
func TestAFullQuotaTakesNothingFromTheOthers(t *testing.T) {
	person := func(identity, address string) Person {
		return Person{Key: "APIkey", Identity: identity, Address: netip.MustParsePrefix(address)}
	}
	l := New(Config{Quotas: Quotas{
		Identity: Quota{Sockets: 2, Rooms: Rate{PerSecond: 0.001, Burst: 2}},
		Address:  Quota{Sockets: 1, Rooms: Rate{PerSecond: 0.001, Burst: 1}},
	}})
	for _, act := range []struct {
		undo    func(Person)
		try     func(Person) error
		refusal string
	}{
		{undo: l.Leave, try: l.Join, refusal: "too many sockets of this address"},
		{undo: l.ReturnRoom, try: l.OpenRoom, refusal: "too many new rooms of this address"},
	} {
		home, office, train := person("ada", "192.0.2.1/32"), person("ada", "198.51.100.1/32"), person("ada", "203.0.113.1/32")
		if err := act.try(home); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if err := act.try(home); err == nil || err.Error() != act.refusal {
				t.Errorf("a second one is answered %v, want %s", err, act.refusal)
			}
		}
		if err := act.try(office); err != nil {
			t.Errorf("refusals of the address were charged to the identity: %v", err)
		}
		if err := act.try(train); err == nil {
			t.Error("a third of the identity passes")
		}
		act.undo(home)
		if err := act.try(train); err != nil {
			t.Errorf("what was given back cannot be taken: %v", err)
		}
	}
}
