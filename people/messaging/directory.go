package messaging

import (
	"slices"
	"time"

	"github.com/holdfast-rtc/holdfast/pin"
)

// directory knows at which nodes its users have clients. It answers only when every live node has registered its
// users under a view that makes this node their directory. Otherwise a client whose registration is on its way would
// miss a message.
type directory struct {
	node  *Node
	table table
	// The latest view is the last one.
	views   []*view
	asked   time.Time
	tellers map[Peer]teller
	// dropped has the sessions of the holders whose registrations were dropped.
	dropped map[Peer]uint64
	// lag counts the live nodes that have not registered everything yet.
	lag int
}

type teller struct {
	number  uint64
	session uint64
	// synced is the mark of the view under which the node's registrations were complete, or 0.
	synced uint64
}

// The bound is larger than the number of nodes that are ever declared dead by mistake.
const maxDropped = 1024

func newDirectory(n *Node) *directory {
	return &directory{node: n, table: newTable(), tellers: make(map[Peer]teller), dropped: make(map[Peer]uint64)}
}

func (d *directory) change(v *view, now time.Time) {
	d.views = append(d.views, v)
	if len(d.views) > rememberedViews {
		d.views = d.views[1:]
	}
	d.asked = now
	for peer, said := range d.tellers {
		if v.has(peer) {
			continue
		}
		d.table.drop(peer)
		delete(d.tellers, peer)
		if len(d.dropped) >= maxDropped {
			clear(d.dropped)
		}
		d.dropped[peer] = said.session
	}
	d.count()
}

func (d *directory) count() {
	d.lag = 0
	for _, peer := range d.node.view.peers {
		if d.tellers[peer].synced != d.node.view.mark {
			d.lag++
		}
	}
}

// register notes which users a node has. A node whose earlier registrations were dropped is synced only in a later
// session.
func (d *directory) register(from Peer, r Register) {
	said := d.tellers[from]
	if r.Number > said.number {
		for _, user := range r.Here {
			d.table.add(user, from)
		}
		for _, user := range r.Gone {
			d.table.remove(user, from)
		}
		said.number, said.session = r.Number, r.Session
		switch {
		case r.Session <= d.dropped[from]:
			said.synced = 0
		case r.Complete:
			said.synced = r.View
		case said.synced != r.View:
			said.synced = 0
		}
		d.tellers[from] = said
		d.count()
	}
	d.node.send(from, Registered{Number: r.Number})
}

// knows reports whether this node has seen the view of the route's origin. A view that it has not seen is newer than
// its own.
func (d *directory) knows(r Route) bool {
	if !slices.ContainsFunc(d.views, func(v *view) bool { return v.mark == r.View }) {
		return false
	}
	if d.lag == 0 {
		return true
	}
	for _, peer := range d.node.view.peers {
		if !d.toldUs(peer, r.To) {
			return false
		}
	}
	return true
}

func (d *directory) toldUs(peer Peer, user UserID) bool {
	mark := d.tellers[peer].synced
	for _, v := range d.views {
		if v.mark == mark {
			us, ok := v.directory(user)
			return ok && us == d.node.self
		}
	}
	return false
}

// route takes a batch to the receiver's holders, or to the user's directory by the view here. If that may not be
// known yet, the origin is told so and tries again.
func (d *directory) route(r Route) {
	us, ok := d.node.view.directory(r.To)
	switch {
	case !ok, us != d.node.self && r.Hops >= maxHops, us == d.node.self && !r.Overdue && !d.knows(r):
		d.node.send(r.Origin, Miss{Number: r.Number, To: r.To, Unsettled: true})
		return
	case us != d.node.self:
		r.Hops++
		d.node.counters.Forwarded++
		d.node.send(us, r)
		return
	}
	holders := d.table.of(KeyOf(r.To))
	if len(holders) == 0 {
		d.node.send(r.Origin, Miss{Number: r.Number, To: r.To})
		return
	}
	boots := make([]pin.BootID, len(holders))
	for i, holder := range holders {
		boots[i] = holder.Boot
	}
	for _, holder := range holders {
		d.node.send(holder, Deliver{Batch: r.Batch, Holders: boots, View: d.node.view.mark})
	}
}

// tick asks the nodes that were declared dead by mistake to register again, since they do not know that their
// registrations were dropped.
func (d *directory) tick(now time.Time) {
	if d.lag == 0 || now.Sub(d.asked) < d.node.config.AckAfter/2 {
		return
	}
	d.asked = now
	for _, peer := range d.node.view.peers {
		if session := d.dropped[peer]; session > 0 && d.tellers[peer].session <= session {
			d.node.send(peer, Resync{Session: session})
		}
	}
}
