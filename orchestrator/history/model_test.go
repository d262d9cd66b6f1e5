package history

import (
	"fmt"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/holdfast-rtc/holdfast/pin"
)

// kind is that of an operation.
type kind string

const (
	kindPlace   kind = "Place"
	kindRehome  kind = "Rehome"
	kindAgain   kind = "PlaceAgain"
	kindSweep   kind = "Sweep"
	kindWrite   kind = "write"   // by a signaling node, answered
	kindKeep    kind = "Keep"    // by an owner, answered
	kindConfirm kind = "Confirm" // an owner's conclusion
	kindPending kind = "pending" // unanswered
	kindLose    kind = "store"   // by the store: expired, lost, or rolled back
)

// value is nothing, a pin, or damage.
type value struct {
	pin pin.Pin
	raw string
}

func (v value) absent() bool { return v == value{} }

func (v value) String() string {
	switch {
	case v.absent():
		return "nothing"
	case v.raw != "":
		return fmt.Sprintf("damage %q", v.raw)
	default:
		return show(v.pin)
	}
}

func show(p pin.Pin) string {
	if p.IsZero() {
		return "nothing"
	}
	return fmt.Sprintf("%d/%04x@%s:%s", p.Fence.Epoch, p.Fence.Nonce>>48, p.Node, tail(string(p.Boot)))
}

func tail(s string) string { return s[max(0, len(s)-4):] }

// write replaces old by next.
type write struct {
	old   value
	next  pin.Pin        // none for a removal
	known pin.Fence      // the highest that anybody had been told of
	why   *justification // nil for an owner's
	ends  time.Time      // its sender gives up
}

func (w write) String() string { return fmt.Sprintf("%v -> %s", w.old, show(w.next)) }

// input is what was asked, and by whom.
type input struct {
	kind   kind
	who    string
	pin    pin.Pin                  // moved by Rehome and PlaceAgain; held by Keep
	tried  []write                  // asked of the store on the way
	call   kind                     // that a write belongs to
	ground map[pin.BootID]bool      // thought dead during the call
	holds  map[pin.BootID]pin.Fence // said to have the room open
	lost   value                    // current after a loss
	asked  string                   // behind lost
}

// output is how it ended. An operation that failed is not recorded; its unanswered writes are.
type output struct {
	pin     pin.Pin
	fenced  bool // Confirm: the pin fences ours
	missing bool // Confirm: ours is not current
}

// state is that of the sequential model.
type state struct {
	stands value
	high   pin.Fence // of all time
}

// put is the state after p was written.
func (s state) put(p pin.Pin) state {
	return state{stands: value{pin: p}, high: higher(s.high, p.Fence)}
}

func higher(a, b pin.Fence) pin.Fence {
	if a.Less(b) {
		return b
	}
	return a
}

// model is for porcupine.
func model() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return state{} },
		Step: func(before, in, out any) (bool, any) {
			return step(before.(state), in.(input), out.(output))
		},
		DescribeOperation: func(in, out any) string { return describe(in.(input), out.(output)) },
		DescribeState: func(s any) string {
			return fmt.Sprintf("%v, highest %v", s.(state).stands, s.(state).high)
		},
	}
}

func step(s state, in input, out output) (bool, state) {
	switch in.kind {
	case kindLose:
		s.stands = in.lost
		return true, s
	case kindPending:
		// It takes effect now. One without effect is at the end of the history.
		if w := in.tried[0]; w.old == s.stands {
			return true, s.put(w.next)
		}
		return true, s
	case kindKeep:
		return keep(s, in, out)
	case kindConfirm:
		return confirm(s, in, out), s
	case kindWrite:
		return signalingWrite(s, in, out)
	default:
		return place(s, in, out), s
	}
}

// place: the returned pin is current.
func place(s state, in input, out output) bool {
	switch {
	case in.kind == kindRehome && out.pin.Boot == in.pin.Boot:
		return false // The caller knew it dead.
	case in.kind == kindAgain && out.pin == in.pin:
		return false // Its node refused it.
	default:
		return s.stands.raw == "" && s.stands.pin == out.pin && !out.pin.IsZero()
	}
}

// signalingWrite finds what is current, or has written its own.
func signalingWrite(s state, in input, out output) (bool, state) {
	if s.stands.raw == "" && s.stands.pin == out.pin {
		return true, s
	}
	if w := in.tried[0]; w.next == out.pin && w.old == s.stands && mayReplace(s, in, w) {
		return true, s.put(w.next)
	}
	return false, s
}

// mayReplace: fences grow, and a move has a justification.
func mayReplace(s state, in input, w write) bool {
	old := s.stands.pin
	switch {
	case w.next.IsZero():
		return in.ground[old.Boot]
	case s.stands.absent():
		return w.known.Less(w.next.Fence) // Above what was lost, too.
	case s.stands.raw != "":
		return w.known.Less(w.next.Fence) // Of damage.
	case !old.Fence.Less(w.next.Fence):
		return false
	default:
		return old.Fence.Less(s.high) || in.ground[old.Boot] ||
			!in.holds[w.next.Boot].IsZero() || // Handed back to an owner.
			in.call == kindRehome && old.Boot == in.pin.Boot || in.call == kindAgain && old.Fence == in.pin.Fence
	}
}

// keep: an owner reads its pin, or writes it over nothing or a lower one, never over damage.
func keep(s state, in input, out output) (bool, state) {
	if s.stands.raw == "" && s.stands.pin == out.pin {
		return true, s
	}
	for _, w := range in.tried {
		if w.next == out.pin && w.old == s.stands && (s.stands.absent() || s.stands.raw == "" && s.stands.pin.Fence.Less(w.next.Fence)) {
			return true, s.put(w.next)
		}
	}
	return false, s
}

// confirm is right if it was true at some moment.
func confirm(s state, in input, out output) bool {
	switch {
	case out.missing:
		return s.stands.pin != in.pin
	case out.fenced:
		return s.stands.pin == out.pin && in.pin.Fence.Less(out.pin.Fence)
	default:
		return s.stands.pin == in.pin && out.pin == in.pin
	}
}

func describe(in input, out output) string {
	switch in.kind {
	case kindLose:
		return fmt.Sprintf("%s: %v stands now", in.asked, in.lost)
	case kindPending:
		return fmt.Sprintf("%s: write %v", in.who, in.tried[0])
	case kindWrite:
		return fmt.Sprintf("%s: %s writes %v, %s stands", in.who, in.call, in.tried[0], show(out.pin))
	default:
	}
	text := fmt.Sprintf("%s: %s", in.who, in.kind)
	if !in.pin.IsZero() {
		text += "(" + show(in.pin) + ")"
	}
	if out.missing {
		return text + " = it does not stand"
	}
	if out.fenced {
		return text + " = fenced by " + show(out.pin)
	}
	return text + " = " + show(out.pin)
}
