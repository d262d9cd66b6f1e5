package pinowner

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/testkit"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

// A store that refuses writes is dead to an owner: newcomers to an open room are let in by the last confirmation,
// then by the majority.
func TestOpenRoomTakesPeopleWhileWritesAreRefused(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Majority = func() bool { return true }
	withOwner(t, cfg, func(t *testing.T, own *Owner, s *testkit.MemoryStore, _ *testkit.Rooms, ours pin.Pin) {
		s.RefuseWrites(true)
		for passed := time.Duration(0); passed < time.Minute; passed += time.Second {
			if err := own.Confirm(t.Context(), "r", ours); err != nil {
				t.Fatalf("%v after the store began to refuse writes Confirm = %v", passed, err)
			}
			after(time.Second)
		}
		s.RefuseWrites(false)
		after(2 * time.Second)
		if !own.Synced().Has(s.Incarnation()) {
			t.Error("two seconds after the store takes writes again its incarnation is not reported")
		}
	})
}

// A store that refuses writes may be a cut-off master with old pins: in a minority it confirms nothing.
func TestMinorityTakesNobodyWhileWritesAreRefused(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Majority = func() bool { return false }
	withOwner(t, cfg, func(t *testing.T, own *Owner, s *testkit.MemoryStore, _ *testkit.Rooms, ours pin.Pin) {
		s.RefuseWrites(true)
		after(confirmedFor + time.Second)
		if err := own.Confirm(t.Context(), "r", ours); !errors.Is(err, pin.ErrUnconfirmed) {
			t.Errorf("Confirm = %v, want ErrUnconfirmed", err)
		}
	})
}

// An owner that cannot refresh withdraws its report after 15 s, because its pins expire: whoever claims its room then
// asks it.
func TestOwnerWithdrawsItsReportWhileItCannotRefresh(t *testing.T) {
	for name, fault := range map[string]func(*testkit.MemoryStore){
		"the store is away":         func(s *testkit.MemoryStore) { s.Fail(errors.New("the store is away")) },
		"the store takes no writes": func(s *testkit.MemoryStore) { s.RefuseWrites(true) },
	} {
		t.Run(name, func(t *testing.T) {
			withOwner(t, DefaultConfig(), func(t *testing.T, own *Owner, s *testkit.MemoryStore, _ *testkit.Rooms, _ pin.Pin) {
				after(time.Minute)
				if !own.Synced().Has(s.Incarnation()) {
					t.Fatal("an owner whose refreshes succeed does not report its incarnation")
				}
				fault(s)
				if after(10 * time.Second); !own.Synced().Has(s.Incarnation()) {
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
	cfg := DefaultConfig()
	withOwner(t, cfg, func(t *testing.T, _ *Owner, s *testkit.MemoryStore, r *testkit.Rooms, _ pin.Pin) {
		open := r.Held()
		for i := range many {
			room, p := ring.RoomID(fmt.Sprintf("r-%d", i)), pinAt("a", 1, 5000, pin.NewFreshNonce())
			s.Put(room, p.Encode())
			open = append(open, pin.Holding{Room: room, Pin: p})
		}
		r.Open(open...)
		after(cfg.ProlongEvery) // Those that were not confirmed by opening are prolonged at first sight.
		_ = s.Prolonged()
		began := time.Now()
		after(cfg.ProlongEvery)
		prolonged := s.Prolonged()
		if n := len(prolonged); n < many-many/10 || n > many+many/10 {
			t.Errorf("%d pins were prolonged %d times in %v, want each about once", many+1, n, cfg.ProlongEvery)
		}
		minutes := make(map[time.Duration]int)
		for _, at := range prolonged {
			minutes[at.Sub(began)/time.Minute]++
		}
		for minute, n := range minutes {
			if n > many/4 {
				t.Errorf("%d of %d pins were prolonged in minute %d: they are not spread", n, many, minute)
			}
		}
	})
}
