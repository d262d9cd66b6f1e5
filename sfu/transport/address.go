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
	if holder = t.byAddress[from]; holder != nil {
		if holder.cfg.Owner != c.cfg.Owner && holder.alive(now) {
			return false
		}
		holder.addresses = slices.DeleteFunc(holder.addresses, func(a egress.Address) bool { return a == from })
	}
	if len(c.addresses) == maxAddresses {
		used := c.selected.Load()
		oldest := slices.IndexFunc(c.addresses, func(a egress.Address) bool { return used == nil || a != *used })
		t.drop(c.addresses[oldest])
		c.addresses = slices.Delete(c.addresses, oldest, oldest+1)
	}
	c.addresses = append(c.addresses, from)
	t.byAddress[from] = c
	return true
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
