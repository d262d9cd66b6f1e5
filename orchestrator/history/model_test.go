package history

import (
	"fmt"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/holdfast-rtc/holdfast/pin"
)

// kind is what an operation of the model is.
type kind string

const (
	kindPlace   kind = "Place"
	kindRehome  kind = "Rehome"
	kindAgain   kind = "PlaceAgain"
	kindSweep   kind = "Sweep"
	kindWrite   kind = "write"   // one write of a signaling node, and its answer
	kindKeep    kind = "Keep"    // one question of an owner to the store, and its answer
	kindConfirm kind = "Confirm" // what an owner concludes, perhaps from memory
	kindPending kind = "pending" // a write whose outcome nobody was told
	kindLose    kind = "store"   // the store itself: it expired, forgot, or went back in time
)

// value is what the store holds: nothing, a pin, or a text that is none.
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

// show is a pin in short.
func show(p pin.Pin) string {
	if p.IsZero() {
		return "nothing"
	}
	return fmt.Sprintf("%d/%04x@%s:%s", p.Fence.Epoch, p.Fence.Nonce>>48, p.Node, tail(string(p.Boot)))
}

func tail(s string) string { return s[max(0, len(s)-4):] }

// write is one write that a client asked the store for: next in the place of old.
type write struct {
	old   value
	next  pin.Pin        // none: it is a removal
	known pin.Fence      // the highest that anybody had been told of when it was sent
	why   *justification // what its maker has against nodes; nil for an owner's
	ends  time.Time      // when its sender gives up
}

func (w write) String() string { return fmt.Sprintf("%v -> %s", w.old, show(w.next)) }

// input is what an operation was asked to do, and by whom.
type input struct {
	kind   kind
	who    string
	pin    pin.Pin                  // what Rehome and PlaceAgain want moved; what Keep holds
	tried  []write                  // what the operation asked the store for on its way
	call   kind                     // of a write: the call that it belongs to, whose pin it is
	ground map[pin.BootID]bool      // boots that this signaling node thought dead at some moment of the call
	holds  map[pin.BootID]pin.Fence // boots that said in this call that they have the room open
	lost   value                    // what stands after the store lost something
	asked  string                   // the fault behind lost
}

// output is how it ended. Operations that failed are not in a history: each of their writes
// whose outcome is unknown is there as a pending one.
type output struct {
	pin     pin.Pin // what was returned
	fenced  bool    // Confirm: the pin returned fences ours
	missing bool    // Confirm: ours does not stand
}

// state is one room's pin in the sequential model.
type state struct {
	stands value
	high   pin.Fence // the highest fence that ever stood
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

// model is what porcupine checks a history against.
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

// step is the sequential specification.
func step(s state, in input, out output) (bool, state) {
	switch in.kind {
	case kindLose:
		s.stands = in.lost
		return true, s
	case kindPending:
		// It does at this moment what it would do at this moment. One that never reached the
		// store is put at the end of the history, where nobody looks.
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

// place is Place, Rehome and PlaceAgain: what they return stands.
func place(s state, in input, out output) bool {
	switch {
	case in.kind == kindRehome && out.pin.Boot == in.pin.Boot:
		return false // The caller knows that it is dead.
	case in.kind == kindAgain && out.pin == in.pin:
		return false // Its node has refused it.
	default:
		return s.stands.raw == "" && s.stands.pin == out.pin && !out.pin.IsZero()
	}
}

// signalingWrite is a write of a signaling node that was answered: it finds what stands, or has put its own there.
func signalingWrite(s state, in input, out output) (bool, state) {
	if s.stands.raw == "" && s.stands.pin == out.pin {
		return true, s
	}
	if w := in.tried[0]; w.next == out.pin && w.old == s.stands && mayReplace(s, in, w) {
		return true, s.put(w.next)
	}
	return false, s
}

// mayReplace is the rule for a signaling node's write: fences grow, and a pin is only moved with a justification.
func mayReplace(s state, in input, w write) bool {
	old := s.stands.pin
	switch {
	case w.next.IsZero():
		return in.ground[old.Boot]
	case s.stands.absent():
		return w.known.Less(w.next.Fence) // Above everything that was forgotten, too.
	case s.stands.raw != "":
		return w.known.Less(w.next.Fence) // Whatever was damaged.
	case !old.Fence.Less(w.next.Fence):
		return false
	default:
		return old.Fence.Less(s.high) || in.ground[old.Boot] ||
			!in.holds[w.next.Boot].IsZero() || // handed back to who has it open
			in.call == kindRehome && old.Boot == in.pin.Boot || in.call == kindAgain && old.Fence == in.pin.Fence
	}
}

// keep is an owner's look at its pin: it sees what stands, or puts its own back over nothing or
// over a lower one. Damage it leaves alone.
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

// confirm is right if the pin stood at some moment, or did not, or a higher one did, when it says so.
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
