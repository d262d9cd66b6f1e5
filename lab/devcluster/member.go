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

// Others keep the addresses of the store and the signaling nodes, which come back at them, as a media node does at those of its media.
func (m *member) args(join, backends []string, o Options) []string {
	free := net.JoinHostPort(o.host(m.name).IP, "0")
	gossip := []string{"--gossip-listen", free}
	if len(join) > 0 {
		gossip = append(gossip, "--join", strings.Join(join, ","))
	} else {
		gossip = append(gossip, "--solo")
	}
	common := []string{string(m.role), "--name", m.name, "--log-format", "json"}
	scraped := free
	// The front may be of another family than the nodes.
	if host, _, err := net.SplitHostPort(o.Listen); m.role == RoleFront && err == nil && net.ParseIP(host).IsLoopback() {
		scraped = net.JoinHostPort(host, "0")
	}
	measured := append(slices.Clone(common), "--metrics-listen", m.again(child.AddressMetrics, scraped))
	switch m.role {
	case RoleStore:
		return append(common, "--listen", m.again(child.AddressStore, free))
	case RoleSentinel:
		return append(common, "--listen", m.again(child.AddressSentinel, free))
	case RoleSFU:
		return slices.Concat(measured, gossip, []string{"--control-listen", free, "--media-listen", m.again(child.AddressMedia, o.mediaListen(m.name))})
	case RoleSignaling:
		return slices.Concat(measured, gossip, []string{"--listen", m.again(child.AddressHTTP, free), "--control-listen", free, "--dev"}, o.origins(), o.turn(m.name))
	case RoleFront:
		return slices.Concat(measured, []string{"--listen", m.again(child.AddressHTTP, o.Listen), "--backend", strings.Join(backends, ",")})
	default:
		return common
	}
}

func (m *member) again(kind, first string) string {
	if address := m.seen[kind]; address != "" {
		return address
	}
	return first
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
