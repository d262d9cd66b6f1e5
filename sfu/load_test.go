package sfu

import (
	"testing"
	"time"
)

func TestExpectedCost(t *testing.T) {
	// 3 people, all with a camera: 3 videos and 3 voices, each to 2 others.
	if got, want := expectedCost(3), (rate{6*1_500_000 + 6*40_000, 6*160 + 6*50}); got != want {
		t.Errorf("a room of 3 costs %v, want %v", got, want)
	}
	if expectedCost(0) != expectedCost(defaultExpectedSize) || expectedCost(1) != expectedCost(2) {
		t.Error("an unknown size is not the default one, or a room of one is free")
	}
	if huge := expectedCost(1 << 31); huge != expectedCost(maxExpectedSize) {
		t.Errorf("an absurd size costs %v", huge)
	}
}

func TestReservationsDecay(t *testing.T) {
	cost := expectedCost(4)
	last := cost
	for age := time.Duration(0); age <= reservationLife; age += time.Second {
		now := reserved(cost, age)
		if now.bits > last.bits || now.packets > last.packets {
			t.Fatalf("the reservation grows at %v: %v after %v", age, now, last)
		}
		last = now
	}
	if last != (rate{}) {
		t.Errorf("the reservation never ends: %v", last)
	}
	if half := reserved(cost, reservationLife/2); half.bits < cost.bits*49/100 || half.bits > cost.bits*51/100 {
		t.Errorf("half-way %v of %v is reserved", half, cost)
	}
}

func TestHeadroom(t *testing.T) {
	ceiling := rate{1000, 100}
	for _, c := range []struct {
		load, cost rate
		want       bool
	}{
		{rate{500, 50}, rate{500, 50}, true},
		{rate{500, 50}, rate{501, 1}, false},
		{rate{500, 50}, rate{1, 51}, false},
		{rate{99, 9}, rate{5000, 5000}, true},
		{rate{99, 10}, rate{5000, 1}, false},
	} {
		if got := headroom(c.load, c.cost, ceiling); got != c.want {
			t.Errorf("headroom(%v, %v) = %v, want %v", c.load, c.cost, got, c.want)
		}
	}
}

func TestMeter(t *testing.T) {
	var m meter
	at := time.UnixMilli(1769000000000)
	m.observe(rate{100, 10}, at)
	if got := m.observe(rate{300, 20}, at.Add(100*time.Millisecond)); got != (rate{}) {
		t.Errorf("a tenth of a second gives %v", got)
	}
	if got := m.observe(rate{2100, 110}, at.Add(2*time.Second)); got != (rate{1000, 50}) {
		t.Errorf("rate is %v", got)
	}
}
