package devcluster

import (
	"cmp"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"

	"github.com/holdfast-rtc/holdfast/internal/child"
)

// member is one node over all runs. The supervisor's mutex guards it.
type member struct {
	name    string
	role    Role
	log     *logbook
	run     *process          // nil before the first
	seen    map[string]string // of the latest run that reported
	starts  int
	pending bool
}

func (m *member) node() Node {
	n := Node{Name: m.name, Role: m.role, State: StateDead, Starts: m.starts, Addresses: maps.Clone(m.seen)}
	switch {
	case m.run == nil && m.pending, m.run != nil && m.pending && !m.run.alive():
		n.State = StateStarting
	case m.run == nil:
	case m.run.alive():
		n.State, n.Pid = StateRunning, m.run.pid
	default:
		n.Pid, n.Ended = m.run.pid, m.run.how
	}
	return n
}

// A node keeps the addresses that others know it by: the store, the signaling nodes and the front come back at them. A media node does so at
// its media's, and everybody at its metrics', but only while nobody else has the port. choose gives a port for 0: the earlier one, if it is free.
func (m *member) args(join, backends []string, o Options, choose func(address, earlier string) string) []string {
	free := net.JoinHostPort(o.host(m.name).IP, "0")
	fresh := func() string { return choose(free, "") }
	common := []string{string(m.role), "--name", m.name, "--log-format", "json"}
	switch m.role {
	case RoleStore:
		return append(common, "--listen", m.again(child.AddressStore, fresh))
	case RoleSentinel:
		return append(common, "--listen", m.again(child.AddressSentinel, fresh))
	case RoleFront:
		scraped := free
		// The front may be of another family than the nodes.
		if host, _, err := net.SplitHostPort(o.Listen); err == nil && net.ParseIP(host).IsLoopback() {
			scraped = net.JoinHostPort(host, "0")
		}
		listen := m.again(child.AddressHTTP, func() string { return choose(o.Listen, "") })
		return append(common, "--listen", listen, "--metrics-listen", choose(scraped, m.seen[child.AddressMetrics]), "--backend", strings.Join(backends, ","))
	case RoleSFU, RoleSignaling:
	}
	member := append(common, "--gossip-listen", fresh(), "--control-listen", fresh(), "--metrics-listen", choose(free, m.seen[child.AddressMetrics]))
	if len(join) > 0 {
		member = append(member, "--join", strings.Join(join, ","))
	} else {
		member = append(member, "--solo")
	}
	if m.role == RoleSFU {
		return append(member, "--media-listen", choose(o.mediaListen(m.name), m.seen[child.AddressMedia]))
	}
	member = append(member, "--listen", m.again(child.AddressHTTP, fresh), "--dev")
	return slices.Concat(member, o.origins(), o.turn(m.name, choose))
}

func (m *member) again(kind string, first func() string) string {
	if address := m.seen[kind]; address != "" {
		return address
	}
	return first()
}

func (n Node) line() string {
	var ports []string
	for _, kind := range slices.Sorted(maps.Keys(n.Addresses)) {
		_, port, err := net.SplitHostPort(n.Addresses[kind])
		if err == nil {
			ports = append(ports, kind+" "+port)
		}
	}
	line := fmt.Sprintf("%-12s pid %-8d %-8s %s", n.Name, n.Pid, n.State, strings.Join(ports, "  "))
	if n.State == StateDead && n.Ended != "" {
		line += "  (" + n.Ended + ")"
	}
	return strings.TrimRight(line, " ")
}

// byRoleAndAge orders the store, Sentinels, media nodes, signaling nodes, the front; then by number.
func byRoleAndAge(a, b Node) int {
	roles := []Role{RoleStore, RoleSentinel, RoleSFU, RoleSignaling, RoleFront}
	return cmp.Or(
		cmp.Compare(slices.Index(roles, a.Role), slices.Index(roles, b.Role)),
		cmp.Compare(len(a.Name), len(b.Name)), // sfu-10 after sfu-9
		cmp.Compare(a.Name, b.Name),
	)
}
