package transport

import (
	"slices"
	"time"

	"github.com/holdfast-rtc/holdfast/sfu/egress"
)

// maxAddresses bounds the addresses of one connection, because browsers check from each interface and family. The
// address that is unused for longest gives way.
const maxAddresses = 8

// admit is false for the address of another client's living connection: knowing where a client is must not suffice to
// take its media.
func (t *Transport) admit(c *Conn, from egress.Address, now time.Time) bool {
	t.mu.RLock()
	holder := t.byAddress[from]
	t.mu.RUnlock()
	if holder == c {
		return true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, open := t.conns[c]; !open {
		return false
	}
	if holder = t.byAddress[from]; holder != nil && !c.mayTake(holder, from, now) {
		return false
	}
	t.give(c, from)
	return true
}

// mayTake reports whether a check with c's password takes the address from its holder. No check takes the address of a
// media node that control named, except for a newer connection to that node. It needs transport.mu.
func (c *Conn) mayTake(holder *Conn, from egress.Address, now time.Time) bool {
	same := holder.cfg.Owner == c.cfg.Owner && (holder.keyed == nil) == (c.keyed == nil)
	switch {
	case same:
		return c.keyed == nil || c.opened.After(holder.opened)
	case holder.keyed != nil && holder.keyed.dialled == from:
		return false
	default:
		return !holder.alive(now)
	}
}

// claim gives a keyed connection the address that control named, whoever has it. It is false when the connection is
// closed.
func (t *Transport) claim(c *Conn, at egress.Address) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, open := t.conns[c]; !open {
		return false
	}
	c.keyed.dialled = at
	if t.byAddress[at] != c {
		t.give(c, at)
	}
	return true
}

// give needs mu.
func (t *Transport) give(c *Conn, address egress.Address) {
	if holder := t.byAddress[address]; holder != nil {
		holder.addresses = slices.DeleteFunc(holder.addresses, func(a egress.Address) bool { return a == address })
	}
	if len(c.addresses) == maxAddresses {
		oldest := slices.IndexFunc(c.addresses, func(a egress.Address) bool { return !c.needs(a) })
		t.drop(c.addresses[oldest])
		c.addresses = slices.Delete(c.addresses, oldest, oldest+1)
	}
	c.addresses = append(c.addresses, address)
	t.byAddress[address] = c
}

// needs reports whether an address is in use or was named by control, which are two of maxAddresses. It needs
// transport.mu.
func (c *Conn) needs(address egress.Address) bool {
	used := c.selected.Load()
	return used != nil && *used == address || c.keyed != nil && c.keyed.dialled == address
}

// drop also ends the address's TCP connection. It needs mu.
func (t *Transport) drop(address egress.Address) {
	delete(t.byAddress, address)
	if address.Stream != nil {
		address.Stream.Close()
	}
}

func (t *Transport) gone(from egress.Address) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.byAddress[from]
	if c == nil {
		return
	}
	delete(t.byAddress, from)
	c.addresses = slices.DeleteFunc(c.addresses, func(a egress.Address) bool { return a == from })
	if used := c.selected.Load(); used != nil && *used == from {
		c.selected.CompareAndSwap(used, nil)
	}
}
