package cluster

import (
	"context"
	"log/slog"
	"maps"
	"slices"

	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

// maxGone bounds the remembered departures. A pin outlives its node by at most
// its TTL of an hour, so 1024 restarts an hour are covered; beyond that the oldest boot
// becomes unknown again, which only costs whoever meets its pin a dial.
const maxGone = 1024

// The reasons that events carry in Why.
const (
	whyGossip    = "gossip"
	whyNewerBoot = "newer boot"
	whyLeave     = "leave message"
	whyReturned  = "returned"
)

// members is the state behind the view: who is live and who is gone. It decides;
// it knows neither memberlist nor goroutines, and exactly one goroutine uses it.
//
// A boot is live, gone, or unknown. It becomes live only when memberlist reports
// its member as joined, so a boot that gossip or a proof declared dead comes back only
// that way; one that left by its own word never does. Each change gives its event once.
type members struct {
	log  *slog.Logger
	self Node // ID and Boot decide; the live entry has the rest
	// witnessed: gossip's word only casts doubt on an SFU node. Set before first use.
	witnessed bool
	live      map[ring.NodeID]Node
	gone      map[pin.BootID]Departure // shared with views: replaced, never changed
	oldest    []pin.BootID             // of gone, in order of departure
	silent    map[pin.BootID]struct{}  // those that this process does not hear; replaced, never changed
	settled   bool

	// replaced are the boots that a newer one of their name has outranked and that memberlist still
	// takes for alive, with how often remind has seen them. A quick restart leaves
	// one here until memberlist has noticed, a second or two; two processes with one name, for good.
	replaced map[pin.BootID]int

	version   uint64
	ring      *ring.Ring
	placeable []ring.NodeID // what ring was built from
}

func newMembers(self Node, log *slog.Logger) *members {
	return &members{
		log: log, self: self,
		live: map[ring.NodeID]Node{self.ID: self},
		gone: map[pin.BootID]Departure{},
		ring: ring.New(nil), replaced: map[pin.BootID]int{},
	}
}

// join handles memberlist's word that a member is alive which was unknown or dead.
func (m *members) join(node Node) []Event {
	why := whyGossip
	switch m.gone[node.Boot] {
	case DepartureLeft:
		m.log.Warn("member that left is still gossiped about as alive", "node", node.ID, "boot", node.Boot)
		return nil
	case DepartureDead:
		why = whyReturned
	}
	current, live := m.live[node.ID]
	switch {
	case live && current.Boot == node.Boot:
		return append(m.trust(current), m.update(node)...)
	case live && current.Boot.Newer(node.Boot):
		m.log.Warn("older boot of a node is ignored", "node", node.ID, "boot", node.Boot, "newer_boot", current.Boot)
		m.depart(node.Boot, DepartureDead)
		m.replaced[node.Boot] = 0
		return nil
	}
	var events []Event
	if live {
		// Usually a quick restart, which memberlist has not noticed yet. When the older process does live on it
		// is ignored from here, also once the newer one is gone, until memberlist sees it join anew.
		m.log.Warn("newer boot of a node joined: the older one counts as dead",
			"node", node.ID, "boot", current.Boot, "newer_boot", node.Boot)
		events = m.remove(current, DepartureDead, EventDead, whyNewerBoot)
		m.replaced[current.Boot] = 0
	}
	delete(m.replaced, node.Boot)
	if m.gone[node.Boot] != "" {
		m.gone = maps.Clone(m.gone)
		delete(m.gone, node.Boot)
		m.oldest = slices.DeleteFunc(m.oldest, func(b pin.BootID) bool { return b == node.Boot })
	}
	node.Load = Load{}
	m.live[node.ID] = node
	return append(events, m.event(EventJoined, node, why)...)
}

// update handles new metadata of a member. A member whose first metadata could not be
// understood joins here.
func (m *members) update(node Node) []Event {
	current, live := m.live[node.ID]
	if !live || current.Boot != node.Boot {
		if m.gone[node.Boot] != "" {
			return nil // Proven dead or replaced; only a join brings it back.
		}
		return m.join(node)
	}
	node.Load, node.Doubted = current.Load, current.Doubted
	if node == current {
		return nil
	}
	m.live[node.ID] = node
	return m.event(EventUpdated, node, whyGossip)
}

// die handles memberlist's word that a member is dead or has left; it does not
// tell which. A leave message that came before it has already decided. In a witnessed view it is only a
// doubt about an SFU node: it stays, off the ring, until it is confirmed or taken back.
func (m *members) die(node Node) []Event {
	delete(m.replaced, node.Boot)
	current, live := m.live[node.ID]
	switch {
	case !live || current.Boot != node.Boot || current.Doubted:
		return nil
	case m.witnessed && current.Role == RoleSFU:
		current.Doubted = true
		m.live[node.ID] = current
		return m.event(EventDoubted, current, whyGossip)
	default:
		return m.remove(current, DepartureDead, EventDead, whyGossip)
	}
}

// trust ends the doubt about a live member: gossip sees it again.
func (m *members) trust(node Node) []Event {
	if !node.Doubted {
		return nil
	}
	node.Doubted = false
	m.live[node.ID] = node
	return m.event(EventTrusted, node, whyReturned)
}

// leave handles a member's own leave message. It reports whether that was news,
// so that the message is worth passing on.
func (m *members) leave(node Node) (events []Event, news bool) {
	if node.Boot == m.self.Boot || m.gone[node.Boot] == DepartureLeft {
		return nil, false
	}
	delete(m.replaced, node.Boot)
	if current, live := m.live[node.ID]; live && current.Boot == node.Boot {
		return m.remove(current, DepartureLeft, EventLeft, whyLeave), true
	}
	m.depart(node.Boot, DepartureLeft)
	return nil, true
}

// reportDead handles a death proven elsewhere. The boot may be one that gossip has not
// told us of: it is remembered all the same, and the event carries what is known.
func (m *members) reportDead(node Node, why string) []Event {
	if node.Boot == m.self.Boot || m.gone[node.Boot] != "" {
		return nil
	}
	if current, live := m.live[node.ID]; live && current.Boot == node.Boot {
		node = current
		return m.remove(node, DepartureDead, EventDead, why)
	}
	m.depart(node.Boot, DepartureDead)
	return m.event(EventDead, node, why)
}

// setLoad takes a load report unless it is older than the one known. It reports
// whether it was news, so that the message is worth passing on.
func (m *members) setLoad(node Node, load Load) bool {
	current, live := m.live[node.ID]
	if !live || current.Boot != node.Boot || load.Seq <= current.Load.Seq {
		return false
	}
	current.Load = load
	m.live[node.ID] = current
	return true
}

// setSilent says which boots this process does not hear now; all others it hears.
func (m *members) setSilent(boots []pin.BootID) {
	m.silent = make(map[pin.BootID]struct{}, len(boots))
	for _, boot := range boots {
		m.silent[boot] = struct{}{}
	}
}

// setDraining changes our own entry.
func (m *members) setDraining(draining bool) {
	if own, live := m.live[m.self.ID]; live && own.Boot == m.self.Boot {
		own.Draining = draining
		m.live[m.self.ID] = own
	}
}

// remind says loudly, once per call, which boots live on under a name that a newer
// one has taken. The first call only counts, to give memberlist the time to notice a restart.
func (m *members) remind() {
	for boot, calls := range m.replaced {
		if calls > 0 {
			m.log.Error("two processes run under one node name: the older one is not used; stop it or rename it", "boot", boot)
		}
		m.replaced[boot]++
	}
}

// remove takes a live node out.
func (m *members) remove(node Node, how Departure, kind EventKind, why string) []Event {
	delete(m.live, node.ID)
	m.depart(node.Boot, how)
	return m.event(kind, node, why)
}

// depart remembers how a boot went.
func (m *members) depart(boot pin.BootID, how Departure) {
	m.gone = maps.Clone(m.gone)
	if m.gone[boot] == "" {
		m.oldest = append(m.oldest, boot)
	}
	m.gone[boot] = how
	for len(m.oldest) > maxGone {
		delete(m.gone, m.oldest[0])
		m.oldest = slices.Delete(m.oldest, 0, 1)
	}
}

// event makes the event of a change, and logs it. Changes of our own process
// make none.
func (m *members) event(kind EventKind, node Node, why string) []Event {
	if node.Boot == m.self.Boot {
		return nil
	}
	level := slog.LevelInfo
	if kind == EventUpdated {
		level = slog.LevelDebug
	}
	m.log.Log(context.Background(), level, "member "+string(kind), "node", node.ID, "boot", node.Boot, "role", node.Role, "draining", node.Draining, "why", why)
	return []Event{{Kind: kind, Node: node, Why: why}}
}

// view makes the next immutable view. The ring is rebuilt only when the set of
// placeable nodes has changed, since a load report changes the view every second.
func (m *members) view() *View {
	nodes := maps.Clone(m.live)
	var placeable, silent []ring.NodeID
	for id, node := range nodes {
		_, node.Silent = m.silent[node.Boot]
		nodes[id] = node
		switch {
		case node.Role != RoleSFU || node.Draining || node.Doubted:
		case node.Silent:
			silent = append(silent, id)
		default:
			placeable = append(placeable, id)
		}
	}
	if len(placeable) == 0 {
		placeable = silent // More likely it is we who are cut off.
	}
	slices.Sort(placeable)
	if !slices.Equal(placeable, m.placeable) {
		m.placeable, m.ring = placeable, ring.New(placeable)
	}
	m.version++
	return &View{
		Version: m.version,
		Nodes:   nodes,
		Ring:    m.ring,
		Gone:    m.gone,
		Settled: m.settled,
	}
}
