package cluster

import (
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

// maxGone and goneFor bound what is remembered of departed boots. goneFor is longer than a pin lives, so that no pin
// names a forgotten boot.
const (
	maxGone = 1024
	goneFor = time.Hour + 5*time.Minute
)

// The texts of Event.Why that this package gives itself.
const (
	whyGossip    = "gossip"
	whyNewerBoot = "newer boot"
	whyLeave     = "leave message"
	whyTold      = "another member's word"
	whyReturned  = "returned"
)

// members decides who belongs to the cluster. One goroutine uses it. A boot is live, gone or unknown. A boot that
// left never comes back. A dead one comes back if it joins again, or if memberlist still believes it alive (see
// shadow). Of two boots of one name the newer one counts, and it counts too if it was declared dead as the older one,
// because clocks are set back.
type members struct {
	log           *slog.Logger
	self          Node
	confirmDeaths bool
	live          map[Name]Node
	gone          map[pin.BootID]Departure
	// departed has the oldest first. Views share its elements.
	departed []departure
	// unreachable is replaced as a whole, never changed.
	unreachable map[pin.BootID]struct{}
	settledAt   time.Time
	shadows     map[pin.BootID]*shadow

	version uint64
	ring    *ring.Ring
	// placeable are the nodes of ring.
	placeable []ring.NodeID
}

type departure struct {
	// node has only Role, ID, Boot and Version.
	node Node
	how  Departure
	why  string
	at   time.Time
}

// shadow is a boot that memberlist believes alive and this package does not, as after a quick restart.
type shadow struct {
	node      Node
	wasLive   bool
	reminders int
}

func newMembers(self Node, log *slog.Logger) *members {
	return &members{
		log: log, self: self,
		live: map[Name]Node{self.Name(): self}, gone: map[pin.BootID]Departure{},
		ring: ring.New(nil), shadows: map[pin.BootID]*shadow{},
	}
}

func (m *members) join(node Node) []Event {
	why := whyGossip
	switch m.gone[node.Boot] {
	case DepartureLeft:
		m.log.Warn("member that left is still gossiped about as alive", "node", node.ID, "boot", node.Boot)
		return nil
	case DepartureDead:
		why = whyReturned
	}
	current, live := m.live[node.Name()]
	switch {
	case live && current.Boot == node.Boot:
		if current.Suspect {
			current.Suspect = false
			m.live[node.Name()] = current
			m.logChange("member trusted", current, whyReturned)
		}
		return m.update(node)
	case live && (current.Boot == m.self.Boot || why == whyReturned || current.Boot.Newer(node.Boot)):
		m.log.Warn("older boot of a node is ignored", "node", node.ID, "boot", node.Boot, "newer_boot", current.Boot)
		m.depart(node, DepartureDead, whyNewerBoot, 0)
		m.shadows[node.Boot] = &shadow{node: node}
		return nil
	}
	var events []Event
	if live {
		m.log.Warn("newer boot of a node joined: the older one counts as dead",
			"node", node.ID, "boot", current.Boot, "newer_boot", node.Boot)
		m.depart(current, DepartureDead, whyNewerBoot, 0)
		m.shade(current)
		events = m.event(EventDead, current, whyNewerBoot)
	}
	delete(m.shadows, node.Boot)
	m.forget(func(d departure) bool { return d.node.Boot == node.Boot })
	node.Load, node.Suspect = Load{}, false
	m.live[node.Name()] = node
	return append(events, m.event(EventJoined, node, why)...)
}

// shade remembers a live boot as a shadow, because memberlist tells of a death only once.
func (m *members) shade(node Node) {
	if !node.Suspect {
		m.shadows[node.Boot] = &shadow{node: node, wasLive: true}
	}
}

func (m *members) update(node Node) []Event {
	current, live := m.live[node.Name()]
	if !live || current.Boot != node.Boot {
		if s := m.shadows[node.Boot]; s != nil {
			s.node = node
		}
		if m.gone[node.Boot] != "" {
			// The boot is dead or replaced already.
			return nil
		}
		return m.join(node)
	}
	node.Load, node.Suspect = current.Load, current.Suspect
	m.live[node.Name()] = node
	return nil
}

func (m *members) die(node Node) []Event {
	delete(m.shadows, node.Boot)
	current, live := m.live[node.Name()]
	switch {
	case !live || current.Boot != node.Boot || current.Suspect:
		return nil
	case m.confirmDeaths && current.Role == RoleSFU:
		current.Suspect = true
		m.live[node.Name()] = current
		m.logChange("member suspect", current, whyGossip)
		return nil
	default:
		return m.remove(current, DepartureDead, whyGossip)
	}
}

func (m *members) leave(node Node, age time.Duration) (events []Event, news bool) {
	if node.Boot == m.self.Boot || m.gone[node.Boot] == DepartureLeft || age >= goneFor {
		return nil, false
	}
	delete(m.shadows, node.Boot)
	if current, live := m.live[node.Name()]; live && current.Boot == node.Boot {
		return m.remove(current, DepartureLeft, whyLeave), true
	}
	m.depart(node, DepartureLeft, whyLeave, age)
	return nil, true
}

// heardDead takes another member's word that a boot is dead. It never removes a boot that lives here.
func (m *members) heardDead(node Node, age time.Duration) {
	if m.live[node.Name()].Boot != node.Boot && m.gone[node.Boot] == "" && node.Boot != m.self.Boot && age < goneFor {
		m.depart(node, DepartureDead, whyTold, age)
	}
}

// reportDead remembers the death of an unknown boot, too.
func (m *members) reportDead(node Node, why string) []Event {
	if node.Boot == m.self.Boot || m.gone[node.Boot] != "" {
		return nil
	}
	current, live := m.live[node.Name()]
	if !live || current.Boot != node.Boot {
		m.depart(node, DepartureDead, why, 0)
		return m.event(EventDead, node, why)
	}
	m.shade(current)
	return m.remove(current, DepartureDead, why)
}

func (m *members) confirmDead(node Node, why string) []Event {
	if current := m.live[node.Name()]; current.Boot != node.Boot || !current.Suspect {
		return nil
	}
	return m.reportDead(node, why)
}

func (m *members) setLoad(node Node, load Load) bool {
	current, live := m.live[node.Name()]
	if !live || current.Boot != node.Boot || load.Seq <= current.Load.Seq {
		return false
	}
	current.Load = load
	m.live[node.Name()] = current
	return true
}

func (m *members) setUnreachable(boots []pin.BootID) {
	m.unreachable = make(map[pin.BootID]struct{}, len(boots))
	for _, boot := range boots {
		m.unreachable[boot] = struct{}{}
	}
}

func (m *members) setDraining(draining, overdue bool) {
	own := m.live[m.self.Name()]
	own.Draining, own.Overdue = draining, draining && overdue
	m.live[m.self.Name()] = own
}

const warnAt = 3

// remind looks at the shadows. At its second look a boot is used again, or an error is logged if another boot has its
// name.
func (m *members) remind() (events []Event) {
	m.forget(func(d departure) bool { return time.Since(d.at) >= goneFor })
	for boot, s := range m.shadows {
		_, taken := m.live[s.node.Name()]
		s.reminders++
		switch {
		case s.reminders == 1:
		case !taken:
			events = append(events, m.join(s.node)...)
		case s.reminders%warnAt == 2:
			m.log.Error("two processes run under one node name: the older one is not used; stop it or rename it", "boot", boot)
		}
	}
	return events
}

// remove takes a boot out. A boot of the same name that waits as a shadow is left to remind, because it may be dead
// as well.
func (m *members) remove(node Node, how Departure, why string) []Event {
	delete(m.live, node.Name())
	m.depart(node, how, why, 0)
	return m.event(EventKind(how), node, why)
}

func (m *members) depart(node Node, how Departure, why string, age time.Duration) {
	m.forget(func(d departure) bool { return d.node.Boot == node.Boot })
	m.gone = maps.Clone(m.gone)
	m.gone[node.Boot] = how
	m.departed = append(slices.Clip(m.departed), departure{Node{ID: node.ID, Boot: node.Boot, Role: node.Role, Version: node.Version}, how, why, time.Now().Add(-age)})
	for len(m.departed) > maxGone {
		delete(m.gone, m.departed[0].node.Boot)
		m.departed = m.departed[1:]
	}
}

func (m *members) forget(which func(departure) bool) {
	if !slices.ContainsFunc(m.departed, which) {
		return
	}
	m.gone = maps.Clone(m.gone)
	m.departed = slices.DeleteFunc(slices.Clone(m.departed), func(d departure) bool {
		if which(d) {
			delete(m.gone, d.node.Boot)
			return true
		}
		return false
	})
}

func (m *members) event(kind EventKind, node Node, why string) []Event {
	if node.Boot == m.self.Boot {
		return nil
	}
	m.logChange("member "+string(kind), node, why)
	return []Event{{Kind: kind, Node: node, Why: why}}
}

func (m *members) logChange(message string, node Node, why string) {
	m.log.Info(message, "node", node.ID, "boot", node.Boot, "role", node.Role, "draining", node.Draining, "why", why)
}

func (m *members) view() *View {
	nodes, signaling := make(map[ring.NodeID]Node, len(m.live)), map[ring.NodeID]Node{}
	var placeable, unreachable []ring.NodeID
	for _, node := range m.live {
		if node.Role != RoleSFU {
			signaling[node.ID] = node
			continue
		}
		_, node.Unreachable = m.unreachable[node.Boot]
		nodes[node.ID] = node
		switch {
		case node.Draining || node.Suspect:
		case node.Unreachable:
			unreachable = append(unreachable, node.ID)
		default:
			placeable = append(placeable, node.ID)
		}
	}
	if len(placeable) == 0 {
		// Without any node that is heard, this process is cut off and keeps the ones that it does not hear.
		placeable = unreachable
	}
	slices.Sort(placeable)
	if !slices.Equal(placeable, m.placeable) {
		m.placeable, m.ring = placeable, ring.New(placeable)
	}
	m.version++
	return &View{
		Version: m.version, Nodes: nodes, Signaling: signaling, Ring: m.ring,
		Gone: m.gone, departed: m.departed, Settled: !m.settledAt.IsZero(), SettledAt: m.settledAt,
	}
}
