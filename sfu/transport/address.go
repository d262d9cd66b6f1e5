package transport

import (
	"net/netip"
	"slices"
	"time"
)

// maxAddresses is how many addresses one connection may have. A browser checks from each of its interfaces, in two families and
// perhaps through a relay; it uses one of them. The oldest that is not in use makes room for a new one.
const maxAddresses = 8

// admit gives an address from which an authentic check has come to a connection. It reports false, and changes nothing, while the
// address is that of another client's living connection: somebody who knows where a client is must not take its media.
func (t *Transport) admit(c *Conn, from netip.AddrPort, now time.Time) bool {
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
		holder.addresses = slices.DeleteFunc(holder.addresses, func(a netip.AddrPort) bool { return a == from })
	}
	if len(c.addresses) == maxAddresses {
		used := c.selected.Load()
		oldest := slices.IndexFunc(c.addresses, func(a netip.AddrPort) bool { return used == nil || a != *used })
		delete(t.byAddress, c.addresses[oldest])
		c.addresses = slices.Delete(c.addresses, oldest, oldest+1)
	}
	c.addresses = append(c.addresses, from)
	t.byAddress[from] = c
	return true
}
