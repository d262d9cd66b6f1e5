package sfu

import (
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/headroom"
)

func TestReservationsEndAsPeopleAreMeasured(t *testing.T) {
	cost := headroom.Expect(4).Cost()
	last := cost
	for age := time.Duration(0); age <= reservationLife; age += time.Second {
		now := reserved(cost, age, 4, 0)
		if !now.Fits(last) {
			t.Fatalf("the reservation grows at %v: %v after %v", age, now, last)
		}
		last = now
	}
	if last != (headroom.Egress{}) {
		t.Errorf("the reservation never ends: %v", last)
	}
	if half := reserved(cost, reservationLife/2, 4, 0); half != cost.Part(0.5) {
		t.Errorf("half-way %v of %v is reserved", half, cost)
	}
	if one := reserved(cost, 0, 4, 3); one != cost.Part(0.25) {
		t.Errorf("with three of four measured %v of %v is reserved", one, cost)
	}
	if none := reserved(cost, 0, 4, 7); none != (headroom.Egress{}) {
		t.Errorf("with everybody measured %v is reserved", none)
	}
}

func TestMeter(t *testing.T) {
	var m meter
	at := time.UnixMilli(1769000000000)
	m.observe(headroom.Egress{BitsPerSecond: 100, PacketsPerSecond: 10}, at)
	if got := m.observe(headroom.Egress{BitsPerSecond: 300, PacketsPerSecond: 20}, at.Add(100*time.Millisecond)); got != (headroom.Egress{}) {
		t.Errorf("a tenth of a second gives %v", got)
	}
	if got := m.observe(headroom.Egress{BitsPerSecond: 2100, PacketsPerSecond: 110}, at.Add(2*time.Second)); got != (headroom.Egress{BitsPerSecond: 1000, PacketsPerSecond: 50}) {
		t.Errorf("rate is %v", got)
	}
}
