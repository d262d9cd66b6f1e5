package chaos

import (
	"encoding/json"
	"testing"
	"time"
)

// TestTheExchangeKeepsWhatBecameOfEachLetter also of one that comes late, twice, or from nobody.
func TestTheExchangeKeepsWhatBecameOfEachLetter(t *testing.T) {
	x := newExchange()
	ann, bob, second := x.enlist("ann"), x.enlist("bob"), x.enlist("bob")
	second.away = time.Now().Add(time.Hour)
	bob.away = time.Now().Add(-time.Hour)
	for range 3 {
		x.write(ann, "bob")
	}
	now := time.Now()
	if x.unanswered(now) == nil {
		t.Fatal("letters without an answer are taken for answered")
	}
	came := func(at *messenger, number int) {
		body, err := json.Marshal(envelope{"ann", number})
		if err != nil {
			t.Fatal(err)
		}
		x.took(at, "ann", body)
	}
	for number := 1; number <= 3; number++ {
		came(bob, number)
		x.told("ann", uint64(number), stateDelivered)
	}
	came(second, 3)
	if err := x.unanswered(now); err != nil {
		t.Fatal(err)
	}
	letters, late := x.collect(now)
	if len(letters) != 3 || len(late) != 0 {
		t.Fatalf("letters %+v, late %v", letters, late)
	}
	if v := MessagesAnswered(&World{Letters: letters}); v.Outcome != Kept {
		t.Errorf("%+v", v)
	}
	came(bob, 2)
	x.took(bob, "ann", []byte(`{"from":"eve","number":9}`))
	if _, late := x.collect(now); len(late) != 2 {
		t.Errorf("late are %v, want a second letter 2, and eve's", late)
	}
	if again, _ := x.collect(now); len(again) != 0 {
		t.Errorf("judged twice: %+v", again)
	}
}
