package transport

import (
	"time"

	"github.com/pion/stun/v4"

	"github.com/holdfast-rtc/holdfast/sfu/egress"
)

const (
	// reversedAfter is how many answered checks make sure that the client is the controlled end, with the address in use
	// nominated. A standby that answered sooner would be taken by the client itself.
	reversedAfter = 2
	// nominateEvery is the pause between checks of a client that is controlled. A lost one is repeated with the next.
	nominateEvery = time.Second
	// notLooked is a pause of the process in which the room may have moved to the standby. It is shorter than the silence that moves a room, and
	// many times the pause between two looks.
	notLooked = 200 * time.Millisecond
)

// reversal makes the node the controlling end of ICE, so that a node chooses the address in use: this one, or the one
// that goes on in its place. The zero value leaves the choice to the client. It is guarded by Conn.mu.
type reversal struct {
	wanted bool
	// asked is the last check, and at its time.
	asked checkBack
	at    time.Time
	// answers counts to reversedAfter.
	answers int
	// looked is when the node last asked itself whether a check is due.
	looked time.Time
}

// restart begins anew after an ICE restart: the client controls until it has nominated an address.
func (r *reversal) restart() { *r = reversal{wanted: r.wanted} }

func (r *reversal) reversed() bool { return r.answers >= reversedAfter }

// role is that of checks beside the nominations. To a controlled client the node must not seem to be controlled, too:
// the client would control again.
func (r *reversal) role() role {
	if r.reversed() {
		return controlling
	}
	return controlled
}

func (r *reversal) answered(from egress.Address, id [stun.TransactionIDSize]byte, authentic func(password string) bool) {
	if !r.wanted || r.asked.to != from || r.asked.id != id || !authentic(r.asked.remote.password) {
		return
	}
	r.asked = checkBack{}
	r.answers = min(r.answers+1, reversedAfter)
}

// wakes reports whether the process was paused since the last look. Another node may have nominated itself meanwhile, so this one does not for
// nominateEvery: by then it has heard whether its room has moved.
func (r *reversal) wakes(now time.Time) bool {
	paused := r.reversed() && !r.looked.IsZero() && now.Sub(r.looked) >= notLooked
	r.looked = now
	return paused
}

// Reverse makes the node the controlling end of ICE once DTLS is up.
func (c *Conn) Reverse() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reversal.wanted = true
}

// Reversed reports whether the client follows the node's nominations.
func (c *Conn) Reversed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reversal.reversed()
}

// nominate nominates the address in use, if that is due.
func (c *Conn) nominate(now time.Time) {
	c.mu.Lock()
	used, r := c.selected.Load(), &c.reversal
	if r.wakes(now) {
		r.at = now
	}
	due := r.wanted && c.up && c.nominated && !c.closed && used != nil && now.Sub(r.at) >= nominateEvery
	if !due {
		c.mu.Unlock()
		return
	}
	r.at = now
	if r.asked.to != *used {
		r.asked = checkBack{to: *used, id: stun.NewTransactionID(), role: nominating}
	}
	r.asked.remote, r.asked.priority = c.remote, c.priority
	asked, ours := r.asked, c.users[len(c.users)-1].ufrag
	c.mu.Unlock()
	k := c.transport.checks.Get().(*checker) //nolint:forcetypeassert // that is what the pool makes
	c.transport.checkBack(asked, ours, k)
	c.transport.checks.Put(k)
}
