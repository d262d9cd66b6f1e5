package orchestrator

import (
	"errors"
	"testing"

	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

// A room whose pin could not be confirmed is not about to open: whoever asks the owners would hand the room to a node that nobody
// is let in by. What one question was granted, the failure of another does not take back.
func TestOnlyWhatWasGrantedIsAboutToOpen(t *testing.T) {
	keeping(t, DefaultKeeperConfig(), func(t *testing.T, k *Keeper, s *shelf, _ *rooms, _ pin.Pin) {
		const room ring.RoomID = "new"
		p := pinAt("a", 1, 6000, 1)
		asked := pin.Pin{}
		away := errors.New("the store is away")
		ask := func(answer error) {
			t.Helper()
			s.meanwhile(func() { asked = k.Opening(room) })
			s.fail(answer)
			if err := k.Confirm(t.Context(), room, p); answer == nil && err != nil || answer != nil && !errors.Is(err, pin.ErrUnconfirmed) {
				t.Fatalf("Confirm = %v while the store says %v", err, answer)
			}
			if asked != p {
				t.Fatalf("about to open under %v while it is being asked, want %v", asked, p)
			}
		}
		s.put(room, p.Encode())
		if ask(away); !k.Opening(room).IsZero() {
			t.Errorf("about to open under %v, though nobody was let in", k.Opening(room))
		}
		if ask(nil); k.Opening(room) != p {
			t.Errorf("about to open under %v, want %v", k.Opening(room), p)
		}
		if ask(away); k.Opening(room) != p {
			t.Errorf("about to open under %v after another question failed, want %v", k.Opening(room), p)
		}
	})
}
