package cluster

import (
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

// maxGone and goneFor bound the remembered departures. A pin outlives its node by at most its TTL of an
// hour. Beyond them the oldest boot becomes unknown again, which costs whoever meets its pin a dial.
const (
	maxGone = 1024
	goneFor = time.Hour + 5*time.Minute
)

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
// A boot is live, gone, or unknown. It becomes live when memberlist reports its member as joined. One that left
// by its own word never comes back; one that was declared dead does when memberlist sees it join anew, or goes on
// taking it for alive (shadow). Of two boots of one name the newer is used; a boot that was declared dead counts as
// the older, whatever its id says, for a clock may have been set back. Each change gives its event once.
type members struct {
	log  *slog.Logger
	self Node // Name and Boot decide; the live entry has the rest
	// witnessed: gossip's word only casts doubt on an SFU node. Set before first use.
	witnessed bool
	live      map[Name]Node
	gone      map[pin.BootID]Departure // shared with views: replaced, never changed
	departed  []departure              // what gone was made from, oldest first; shared with views, too
	silent    map[pin.BootID]struct{}  // those that this process does not hear; replaced, never changed
	settledAt time.Time                // zero before
	shadows   map[pin.BootID]*shadow   // at most as many as memberlist has members

	version   uint64
	ring      *ring.Ring
	placeable []ring.NodeID // what ring was built from
}

// departure is one boot that went.
type departure struct {
	node Node // Role, ID and Boot
	how  Departure
	at   time.Time
}

// shadow is a boot that is not live here though memberlist takes its member for alive: it was reported dead, or another boot
// of its name is used. A dead process and a quick restart leave one until memberlist has noticed, a second or two.
type shadow struct {
	node      Node
	wasLive   bool // else it has always waited for the other boot to go
	reminders int
}

func newMembers(self Node, log *slog.Logger) *members {
	return &members{
		log: log, self: self,
		live: map[Name]Node{self.Name(): self}, gone: map[pin.BootID]Departure{},
		ring: ring.New(nil), shadows: map[pin.BootID]*shadow{},
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
	current, live := m.live[node.Name()]
	switch {
	case live && current.Boot == node.Boot:
		return append(m.trust(current), m.update(node)...)
	case live && (current.Boot == m.self.Boot || why == whyReturned || current.Boot.Newer(node.Boot)):
		m.log.Warn("older boot of a node is ignored", "node", node.ID, "boot", node.Boot, "newer_boot", current.Boot)
		m.depart(node, DepartureDead, 0)
		m.shadows[node.Boot] = &shadow{node: node}
		return nil
	}
	var events []Event
	if live { // Usually a quick restart, which memberlist has not noticed yet.
		m.log.Warn("newer boot of a node joined: the older one counts as dead",
			"node", node.ID, "boot", current.Boot, "newer_boot", node.Boot)
		m.depart(current, DepartureDead, 0)
		m.shadows[current.Boot] = &shadow{node: current, wasLive: true}
		events = m.event(EventDead, current, whyNewerBoot)
	}
	delete(m.shadows, node.Boot)
	m.forget(func(d departure) bool { return d.node.Boot == node.Boot })
	node.Load, node.Doubted = Load{}, false
	m.live[node.Name()] = node
	return append(events, m.event(EventJoined, node, why)...)
}

// update handles new metadata of a member. A member whose first metadata could not be
// understood joins here.
func (m *members) update(node Node) []Event {
	current, live := m.live[node.Name()]
	if !live || current.Boot != node.Boot {
		if s := m.shadows[node.Boot]; s != nil {
			s.node = node
		}
		if m.gone[node.Boot] != "" {
			return nil // Reported dead or replaced.
		}
		return m.join(node)
	}
	node.Load, node.Doubted = current.Load, current.Doubted
	m.live[node.Name()] = node
	return nil
}

// die handles memberlist's word that a member is dead or has left; it does not
// tell which. A leave message that came before it has already decided. In a witnessed view it is only a
// doubt about an SFU node: it stays, off the ring, until it is confirmed or taken back.
func (m *members) die(node Node) []Event {
	delete(m.shadows, node.Boot)
	current, live := m.live[node.Name()]
	switch {
	case !live || current.Boot != node.Boot || current.Doubted:
		return nil
	case m.witnessed && current.Role == RoleSFU:
		current.Doubted = true
		m.live[node.Name()] = current
		m.say("doubted", current, whyGossip)
		return nil
	default:
		return m.remove(current, DepartureDead, EventDead, whyGossip)
	}
}

// trust ends the doubt about a live member: gossip sees it again.
func (m *members) trust(node Node) []Event {
	if node.Doubted {
		node.Doubted = false
		m.live[node.Name()] = node
		m.say("trusted", node, whyReturned)
	}
	return nil
}

// leave handles a member's own leave message. It reports whether that was news,
// so that the message is worth passing on.
func (m *members) leave(node Node, age time.Duration) (events []Event, news bool) {
	if node.Boot == m.self.Boot || m.gone[node.Boot] == DepartureLeft || age >= goneFor {
		return nil, false
	}
	delete(m.shadows, node.Boot)
	if current, live := m.live[node.Name()]; live && current.Boot == node.Boot {
		return m.remove(current, DepartureLeft, EventLeft, whyLeave), true
	}
	m.depart(node, DepartureLeft, age)
	return nil, true
}

// heardDead handles another member's word, in a state exchange, that a boot has died. It is for those who did not see it: it says
// nothing against a boot that is live here, nor against one that is doubted and may be heard.
func (m *members) heardDead(node Node, age time.Duration) {
	if m.live[node.Name()].Boot != node.Boot && m.gone[node.Boot] == "" && node.Boot != m.self.Boot && age < goneFor {
		m.depart(node, DepartureDead, age)
	}
}

// reportDead handles a death proven elsewhere. The boot may be one that gossip has not
// told us of: it is remembered all the same, and the event carries what is known.
func (m *members) reportDead(node Node, why string) []Event {
	if node.Boot == m.self.Boot || m.gone[node.Boot] != "" {
		return nil
	}
	current, live := m.live[node.Name()]
	if !live || current.Boot != node.Boot {
		m.depart(node, DepartureDead, 0)
		return m.event(EventDead, node, why)
	}
	if !current.Doubted {
		m.shadows[node.Boot] = &shadow{node: current, wasLive: true}
	}
	return m.remove(current, DepartureDead, EventDead, why)
}

// confirmDead is reportDead for a death that rests on gossip's doubt. A doubt that was taken back confirms nothing.
func (m *members) confirmDead(node Node, why string) []Event {
	if current := m.live[node.Name()]; current.Boot != node.Boot || !current.Doubted {
		return nil
	}
	return m.reportDead(node, why)
}

// setLoad takes a load report unless it is older than the one known. It reports
// whether it was news, so that the message is worth passing on.
func (m *members) setLoad(node Node, load Load) bool {
	current, live := m.live[node.Name()]
	if !live || current.Boot != node.Boot || load.Seq <= current.Load.Seq {
		return false
	}
	current.Load = load
	m.live[node.Name()] = current
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
	own := m.live[m.self.Name()]
	own.Draining = draining
	m.live[m.self.Name()] = own
}

// remind forgets old departures, and looks after the shadows. The first call only counts, to give memberlist the time to notice
// a death. A boot that it still takes for alive after that is used again, if no other boot has its name; else an error is logged.
func (m *members) remind() (events []Event) {
	m.forget(func(d departure) bool { return time.Since(d.at) >= goneFor })
	for boot, s := range m.shadows {
		_, taken := m.live[s.node.Name()]
		s.reminders++
		switch {
		case s.reminders == 1:
		case !taken:
			events = append(events, m.join(s.node)...)
		case s.reminders%complainAt == 2:
			m.log.Error("two processes run under one node name: the older one is not used; stop it or rename it", "boot", boot)
		}
	}
	return events
}

// complainAt is at which reminders an error is logged: the second, and every third after it.
const complainAt = 3

// remove takes a live node out. A boot that has always waited for it to go takes its place, as after a restart with a
// clock that was set back.
func (m *members) remove(node Node, how Departure, kind EventKind, why string) []Event {
	delete(m.live, node.Name())
	m.depart(node, how, 0)
	events := m.event(kind, node, why)
	for _, s := range m.shadows {
		if s.node.Name() == node.Name() && !s.wasLive {
			return append(events, m.join(s.node)...)
		}
	}
	return events
}

// depart remembers how a boot went, and how long ago.
func (m *members) depart(node Node, how Departure, age time.Duration) {
	m.forget(func(d departure) bool { return d.node.Boot == node.Boot })
	m.gone = maps.Clone(m.gone)
	m.gone[node.Boot] = how
	m.departed = append(slices.Clip(m.departed), departure{Node{ID: node.ID, Boot: node.Boot, Role: node.Role}, how, time.Now().Add(-age)})
	for len(m.departed) > maxGone {
		delete(m.gone, m.departed[0].node.Boot)
		m.departed = m.departed[1:]
	}
}

// forget makes departed boots unknown.
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

// event makes the event of a change, and logs it. Changes of our own process
// make none.
func (m *members) event(kind EventKind, node Node, why string) []Event {
	if node.Boot == m.self.Boot {
		return nil
	}
	m.say(string(kind), node, why)
	return []Event{{Kind: kind, Node: node, Why: why}}
}

func (m *members) say(what string, node Node, why string) {
	m.log.Info("member "+what, "node", node.ID, "boot", node.Boot, "role", node.Role, "draining", node.Draining, "why", why)
}

// view makes the next immutable view. The ring is rebuilt only when the set of
// placeable nodes has changed, since a load report changes the view every second.
func (m *members) view() *View {
	nodes, signaling := make(map[ring.NodeID]Node, len(m.live)), map[ring.NodeID]Node{}
	var placeable, silent []ring.NodeID
	for _, node := range m.live {
		if node.Role != RoleSFU {
			signaling[node.ID] = node
			continue
		}
		_, node.Silent = m.silent[node.Boot]
		nodes[node.ID] = node
		switch {
		case node.Draining || node.Doubted:
		case node.Silent:
			silent = append(silent, node.ID)
		default:
			placeable = append(placeable, node.ID)
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
		Version: m.version, Nodes: nodes, Signaling: signaling, Ring: m.ring,
		Gone: m.gone, departed: m.departed, Settled: !m.settledAt.IsZero(), SettledAt: m.settledAt,
	}
}
