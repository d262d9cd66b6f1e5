package messaging

import "sync"

// Node is directory, holder and origin for the users and messages of one signaling node. It is safe for concurrent
// use.
type Node struct {
	self      Peer
	config    Config
	transport Transport
	presence  Presence

	// mu guards the fields below.
	mu        sync.Mutex
	view      *view
	locals    map[UserID]*local
	directory *directory
	registrar *registrar
	outbox    *outbox
	// own has the frames from this node to itself.
	own      []Frame
	counters Counters
}

// Counters are for metrics. The first five are present amounts, and the others grow.
type Counters struct {
	// Users is how many users have clients here.
	Users int `json:"users"`
	// Registered is how many users this node is the directory of.
	Registered int `json:"registered"`
	// Waiting and Bytes are of messages that are not answered yet.
	Waiting int `json:"waiting"`
	Bytes   int `json:"bytes"`
	// KeptBytes is the size of the delivered messages that a client may lack.
	KeptBytes int `json:"keptBytes"`

	// Accepted and the next four count messages.
	Accepted  int `json:"accepted"`
	Delivered int `json:"delivered"`
	Offline   int `json:"offline"`
	GaveUp    int `json:"gaveUp"`
	Refused   int `json:"refused"`
	// Retries counts batches that were sent again.
	Retries int `json:"retries"`
	// Forwarded counts the batches that this node forwarded as a directory.
	Forwarded int `json:"forwarded"`
	// Moved counts the users whose directory changed with a view.
	Moved int `json:"moved"`
	// Registrations counts the users that were told to directories.
	Registrations int    `json:"registrations"`
	Malformed     uint64 `json:"malformed"`
	// Dropped counts the frames that did not fit into a queue.
	Dropped uint64 `json:"dropped"`
	// Forgotten counts the kept messages beyond a bound. A client may lack them.
	Forgotten int `json:"forgotten"`
}

// New returns a node that knows no other node yet.
func New(self Peer, config Config, transport Transport, presence Presence) *Node {
	n := &Node{self: self, config: config, transport: transport, presence: presence, locals: make(map[UserID]*local)}
	n.view = newView([]Peer{self})
	n.directory = newDirectory(n)
	n.registrar = newRegistrar(n)
	n.outbox = newOutbox(n)
	n.mu.Lock()
	defer n.unlock()
	n.apply(n.view)
	return n
}

// SetPeers sets the live nodes, which include this one.
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
	n.outbox.change(before, now)
}

// Handle takes a frame from another node.
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
		n.outbox.receipt(from, f, now)
	case Miss:
		n.outbox.miss(f, now)
	case Register:
		n.directory.register(from, f)
	case Registered:
		n.registrar.registered(from, f.Number, now)
	case Resync:
		n.registrar.resync(from, f.Session, now)
	}
}

// Tick does what is due. It must be called about every 25 ms.
func (n *Node) Tick() {
	n.mu.Lock()
	defer n.unlock()
	now := n.config.Now()
	n.outbox.tick(now)
	n.registrar.tick(now)
	n.directory.tick(now)
}

// Counters returns the present counters.
func (n *Node) Counters() Counters {
	n.mu.Lock()
	defer n.mu.Unlock()
	c := n.counters
	c.Users, c.Registered = len(n.locals), len(n.directory.table.first)
	c.Waiting, c.Bytes, c.KeptBytes = n.outbox.waiting, n.outbox.bytes, n.outbox.kept
	return c
}

func (n *Node) send(to Peer, f Frame) {
	if to == n.self {
		n.own = append(n.own, f)
		return
	}
	n.transport.Send(to, f)
}

// unlock handles the frames that this node has sent to itself, and unlocks mu.
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
