package messaging

import "sync"

// Node is safe for concurrent use.
type Node struct {
	self      Peer
	config    Config
	transport Transport
	presence  Presence

	mu        sync.Mutex // guards the fields below
	view      *view
	locals    map[UserID]*local
	directory *directory
	registrar *registrar
	relay     *relay
	own       []Frame // to itself
	counters  Counters
}

// Counters grow, but for the first five.
type Counters struct {
	Users      int `json:"users"`      // with clients here
	Registered int `json:"registered"` // as their directory
	Waiting    int `json:"waiting"`    // messages
	Bytes      int `json:"bytes"`
	KeptBytes  int `json:"keptBytes"` // of delivered messages that a client may lack

	Accepted      int    `json:"accepted"` // messages, as are the next
	Delivered     int    `json:"delivered"`
	Offline       int    `json:"offline"`
	GaveUp        int    `json:"gaveUp"`
	Refused       int    `json:"refused"`
	Retries       int    `json:"retries"`       // batches
	Forwarded     int    `json:"forwarded"`     // as an old directory
	Moved         int    `json:"moved"`         // registrations, by views
	Registrations int    `json:"registrations"` // told to directories
	Malformed     uint64 `json:"malformed"`
	Dropped       uint64 `json:"dropped"`   // queue full
	Forgotten     int    `json:"forgotten"` // kept messages beyond a bound: a client may lack them
}

// New makes a node that is alone.
func New(self Peer, config Config, transport Transport, presence Presence) *Node {
	n := &Node{self: self, config: config, transport: transport, presence: presence, locals: make(map[UserID]*local)}
	n.view = newView([]Peer{self})
	n.directory = newDirectory(n)
	n.registrar = newRegistrar(n)
	n.relay = newRelay(n)
	n.mu.Lock()
	defer n.unlock()
	n.apply(n.view)
	return n
}

// SetPeers replaces the live nodes, including this one.
func (n *Node) SetPeers(peers []Peer) {
	v := newView(peers)
	n.mu.Lock()
	defer n.unlock()
	if v.mark != n.view.mark && v.has(n.self) {
		n.apply(v)
	}
}

func (n *Node) apply(v *view) {
	now := n.config.Now()
	before := n.view
	n.view = v
	n.directory.change(v, now)
	n.registrar.change(v, now)
	n.relay.change(before, now)
}

// Handle takes another node's frame.
func (n *Node) Handle(from Peer, f Frame) {
	n.mu.Lock()
	defer n.unlock()
	n.handle(from, f)
}

func (n *Node) handle(from Peer, f Frame) {
	now := n.config.Now()
	switch f := f.(type) {
	case Route:
		n.directory.route(f)
	case Deliver:
		n.deliver(f)
	case Receipt:
		n.relay.receipt(from, f, now)
	case Miss:
		n.relay.miss(f, now)
	case Register:
		n.directory.register(from, f)
	case Registered:
		n.registrar.registered(from, f.Number, now)
	case Resync:
		n.registrar.resync(from, f.Session, now)
	}
}

// Tick does what is due; call it every 25 ms or so.
func (n *Node) Tick() {
	n.mu.Lock()
	defer n.unlock()
	now := n.config.Now()
	n.relay.tick(now)
	n.registrar.tick(now)
	n.directory.tick(now)
}

// Counters returns the present ones.
func (n *Node) Counters() Counters {
	n.mu.Lock()
	defer n.mu.Unlock()
	c := n.counters
	c.Users, c.Registered = len(n.locals), len(n.directory.table.first)
	c.Waiting, c.Bytes, c.KeptBytes = n.relay.waiting, n.relay.bytes, n.relay.kept
	return c
}

func (n *Node) send(to Peer, f Frame) {
	if to == n.self {
		n.own = append(n.own, f)
		return
	}
	n.transport.Send(to, f)
}

// unlock first handles frames to itself.
func (n *Node) unlock() {
	for len(n.own) > 0 {
		own := n.own
		n.own = nil
		for _, f := range own {
			n.handle(n.self, f)
		}
	}
	n.mu.Unlock()
}
