package orchestrator

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

// A store that refuses writes is dead to an owner: newcomers to an open room are let in by the last confirmation,
// then by the majority.
func TestOpenRoomTakesPeopleWhileWritesAreRefused(t *testing.T) {
	cfg := DefaultPinOwnerConfig()
	cfg.Majority = func() bool { return true }
	withOwner(t, cfg, func(t *testing.T, own *PinOwner, s *memoryStore, _ *rooms, ours pin.Pin) {
		s.refuseWrites(true)
		for passed := time.Duration(0); passed < time.Minute; passed += time.Second {
			if err := own.Confirm(t.Context(), "r", ours); err != nil {
				t.Fatalf("%v after the store began to refuse writes Confirm = %v", passed, err)
			}
			after(time.Second)
		}
		s.refuseWrites(false)
		after(2 * time.Second)
		if !own.Synced().Has(s.incarnation()) {
			t.Error("two seconds after the store takes writes again its incarnation is not reported")
		}
	})
}

// A store that refuses writes may be a cut-off master with old pins: in a minority it confirms nothing.
func TestMinorityTakesNobodyWhileWritesAreRefused(t *testing.T) {
	cfg := DefaultPinOwnerConfig()
	cfg.Majority = func() bool { return false }
	withOwner(t, cfg, func(t *testing.T, own *PinOwner, s *memoryStore, _ *rooms, ours pin.Pin) {
		s.refuseWrites(true)
		after(confirmedFor + time.Second)
		if err := own.Confirm(t.Context(), "r", ours); !errors.Is(err, pin.ErrUnconfirmed) {
			t.Errorf("Confirm = %v, want ErrUnconfirmed", err)
		}
	})
}

// An owner that cannot refresh withdraws its report after 15 s, because its pins expire: whoever claims its room then
// asks it.
func TestOwnerWithdrawsItsReportWhileItCannotRefresh(t *testing.T) {
	for name, fault := range map[string]func(*memoryStore){
		"the store is away":         func(s *memoryStore) { s.fail(errors.New("the store is away")) },
		"the store takes no writes": func(s *memoryStore) { s.refuseWrites(true) },
	} {
		t.Run(name, func(t *testing.T) {
			withOwner(t, DefaultPinOwnerConfig(), func(t *testing.T, own *PinOwner, s *memoryStore, _ *rooms, _ pin.Pin) {
				after(time.Minute)
				if !own.Synced().Has(s.incarnation()) {
					t.Fatal("an owner whose refreshes succeed does not report its incarnation")
				}
				fault(s)
				if after(10 * time.Second); !own.Synced().Has(s.incarnation()) {
					t.Error("the report is withdrawn after 10 s")
				}
				if after(6 * time.Second); own.Synced() != "" {
					t.Errorf("16 s after the last refresh %v is still reported", own.Synced().All())
				}
			})
		})
	}
}

// Pins are read every 5 s and prolonged every 10 min, each at a moment of its own.
func TestPinsAreProlongedEveryTenMinutesAndSpread(t *testing.T) {
	const many = 300
	cfg := DefaultPinOwnerConfig()
	withOwner(t, cfg, func(t *testing.T, _ *PinOwner, s *memoryStore, r *rooms, _ pin.Pin) {
		r.mu.Lock()
		for i := range many {
			room, p := ring.RoomID(fmt.Sprintf("r-%d", i)), pinAt("a", 1, 5000, pin.NewFreshNonce())
			s.put(room, p.Encode())
			r.held = append(r.held, pin.Holding{Room: room, Pin: p})
		}
		r.mu.Unlock()
		after(cfg.ProlongEvery) // Those that were not confirmed by opening are prolonged at first sight.
		s.mu.Lock()
		s.prolonged = nil
		s.mu.Unlock()
		began := time.Now()
		after(cfg.ProlongEvery)
		s.mu.Lock()
		defer s.mu.Unlock()
		if n := len(s.prolonged); n < many-many/10 || n > many+many/10 {
			t.Errorf("%d pins were prolonged %d times in %v, want each about once", many+1, n, cfg.ProlongEvery)
		}
		minutes := make(map[time.Duration]int)
		for _, at := range s.prolonged {
			minutes[at.Sub(began)/time.Minute]++
		}
		for minute, n := range minutes {
			if n > many/4 {
				t.Errorf("%d of %d pins were prolonged in minute %d: they are not spread", n, many, minute)
			}
		}
	})
}
