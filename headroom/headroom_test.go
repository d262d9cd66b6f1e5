package headroom

import (
	"math"
	"testing"
)

func TestCost(t *testing.T) {
	// Sound is exact: everybody hears at most three of the others. Pictures share a page from the second on.
	for name, c := range map[string]struct {
		room Room
		want Egress
	}{
		"two":                    {Expect(2), Egress{2*1_500_000 + 2*40_000, 2*160 + 2*50}},
		"four":                   {Expect(4), Egress{4*2_000_000 + 12*40_000, 4*210 + 12*50}},
		"nothing known":          {Room{}, Expect(DefaultPeople).Cost()},
		"negative":               {Expect(-7), Expect(DefaultPeople).Cost()},
		"one":                    {Expect(1), Expect(2).Cost()},
		"absurd":                 {Expect(1 << 40), Expect(MaxPeople).Cost()},
		"nobody has anything on": {Room{People: 40}, Egress{}},
		"sound only":             {Room{People: 10, Microphones: 10}, Egress{30 * 40_000, 30 * 50}},
		"one speaker":            {Room{People: 100, Microphones: 1}, Egress{99 * 40_000, 99 * 50}},
		"four cameras":           {Room{People: 250, Cameras: 4}, Egress{250 * 2_000_000, 250 * 210}},
		"more on than people":    {Room{People: 2, Cameras: 9, Microphones: 9}, Expect(2).Cost()},
		"measured":               {Room{People: 250, Cameras: 9, Measured: true, Sent: Egress{7, 1}}, Egress{7, 1}},
	} {
		if got := c.room.Cost(); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	for people := 2; people < 400; people++ {
		if less, more := Expect(people).Cost(), Expect(people+1).Cost(); !less.Fits(more) {
			t.Fatalf("a room of %d costs %v, one of %d %v", people, less, people+1, more)
		}
	}
}

func TestAnIdleNodeTakesEveryRoom(t *testing.T) {
	ceiling := Egress{1000, 100}
	for _, c := range []struct {
		load, cost Egress
		want       bool
	}{
		{Egress{500, 50}, Egress{500, 50}, true},
		{Egress{500, 50}, Egress{501, 1}, false},
		{Egress{500, 50}, Egress{1, 51}, false},
		{Egress{99, 9}, Egress{5000, 5000}, true},
		{Egress{99, 9}, Egress{math.MaxUint64, math.MaxUint64}, true},
		{Egress{99, 10}, Egress{5000, 1}, false},
	} {
		if got := Takes(c.load, c.cost, ceiling); got != c.want {
			t.Errorf("Takes(%v, %v) = %v, want %v", c.load, c.cost, got, c.want)
		}
	}
}

func TestALargeNewRoomIsHalfANodeAtFirst(t *testing.T) {
	ceiling := Egress{1000, 100}
	for _, c := range []struct{ cost, want Egress }{
		{Egress{500, 50}, Egress{500, 50}},
		{Egress{2000, 50}, Egress{500, 12}},
		{Egress{600, 500}, Egress{60, 50}},
		{Egress{}, Egress{}},
	} {
		if got := First(c.cost, ceiling); got != c.want {
			t.Errorf("First(%v) is %v, want %v", c.cost, got, c.want)
		}
	}
	large, bits := Expect(1000), Egress{1_000_000_000, 1_000_000}
	if got := large.First(bits).Share(bits); got < 0.499 || got > 0.501 {
		t.Errorf("a large room takes %.3f at first", got)
	}
	for _, room := range []Room{{People: 9, Measured: true, Sent: Egress{2000, 1}}, {People: 1000, Cameras: 9, Running: true}} {
		if got := room.First(ceiling); got != room.Cost() {
			t.Errorf("a room that ran is charged with %v, want %v", got, room.Cost())
		}
	}
}

func TestArithmeticDoesNotWrap(t *testing.T) {
	most := Egress{math.MaxUint64, math.MaxUint64}
	if got := most.Plus(Egress{1, 1}); got != most {
		t.Errorf("the largest amount and one more is %v", got)
	}
	if got := (Egress{1, 1}).Minus(most); got != (Egress{}) {
		t.Errorf("one less the largest amount is %v", got)
	}
	if got := (Egress{}).Into(Egress{BitsPerSecond: 5, PacketsPerSecond: 3}); got != 3 {
		t.Errorf("nothing goes %v times into 3 packets", got)
	}
	if got := (Egress{100, 1}).Part(0.5); got != (Egress{50, 0}) {
		t.Errorf("half is %v", got)
	}
}

// At the lowest layers a room sends no more than otherwise, and all of its sound.
func TestFloor(t *testing.T) {
	for people := range 400 {
		room := Expect(people)
		sound := Room{People: max(people, 1), Microphones: max(people, 1)}
		if people == 0 {
			sound = Room{People: DefaultPeople, Microphones: DefaultPeople}
		}
		if floor := room.Floor(); !floor.Fits(room.Cost()) || !sound.Cost().Fits(floor) {
			t.Fatalf("%d people: %v at least, of %v, with sound of %v", people, floor, room.Cost(), sound.Cost())
		}
	}
	small := Room{People: 9, Cameras: 9, Microphones: 9, Measured: true, Sent: Egress{1000, 10}}
	if got := small.Floor(); got != small.Sent {
		t.Errorf("a room that sends next to nothing sends %v at least", got)
	}
}
