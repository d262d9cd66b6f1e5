package cascade

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/internal/backoff"
	"github.com/holdfast-rtc/holdfast/internal/panics"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/sfu/transport"
)

const (
	// answerWithin is how long one address of another node has to answer before the next one is tried. It is two of the transport's
	// checks, and more than the round trip between nodes that should share a room.
	answerWithin = 100 * time.Millisecond
	// reachWithin has several rounds over a node's addresses, since either process may have no CPU time for a while.
	reachWithin = time.Second
	// callWithin bounds the call that asks another node for its end.
	callWithin = time.Second
	// joinWithin is how long the node that was asked tries to reach the one that asks, which begins later.
	joinWithin = 2 * time.Second
	// passedOverFor is how long a node is not tried again whose media sockets answered nothing.
	passedOverFor = time.Minute
	// unusedFor is how long a trunk without links stays, since rooms that spread again would need it.
	unusedFor = time.Minute
	// forgottenAfter is how long a node without a trunk is remembered.
	forgottenAfter = 2 * passedOverFor
	// renewPause keeps a renewal that fails from disturbing the trunk in use all the time.
	renewPause = 30 * time.Second
	sweepEvery = time.Second
	// crossedTries are made, crossedPause apart, while the other node's call is expected.
	crossedTries = 5
	crossedPause = 100 * time.Millisecond
	// idsKept tells the other node which of its trunks this node knows.
	idsKept = 8
)

var (
	// ErrOtherBoot means that a call was for a former or later process of a node.
	ErrOtherBoot = errors.New("another process of the media node is meant")
	// ErrPassedOver means that a node's media sockets have not answered, and that it is not tried for a minute.
	ErrPassedOver = errors.New("the media node answered its control port and not at its media addresses (UDP): it is passed over for a minute")

	errNoLinks = errors.New("this media node cannot call others")
	errOver    = errors.New("this media node is ending")
	errItself  = errors.New("a media node has no trunk with itself")
	errCrossed = errors.New("the media node says that it calls this one, and does not")
	errBroke   = errors.New("the node broke while it opened a trunk")
)

// Peer is a process of a media node.
type Peer struct {
	Node    ring.NodeID
	Boot    pin.BootID
	Control string // host:port
}

// TrunksConfig is what a node's trunks need of the node.
type TrunksConfig struct {
	Self  Peer
	Media *transport.Transport
	// Addresses returns the media sockets at which other nodes reach this one.
	Addresses func() []netip.AddrPort
	// Links returns a client of the media node at a control address. A node without it only answers.
	Links  func(address string) (control.LinksClient, error)
	Panics *panics.Guard
	Log    *slog.Logger
}

// Trunks opens, renews and ends a media node's trunks, one for each other node. Two nodes that call each other at once get one trunk. It is safe
// for concurrent use.
type Trunks struct {
	cfg TrunksConfig

	mu     sync.Mutex // guards the fields below
	closed bool
	nodes  map[ring.NodeID]*neighbour
	// running are the attempts and the open trunks.
	running sync.WaitGroup
}

// neighbour is another media node.
type neighbour struct {
	// peer is the process at the other end of trunk, which is nil if there is none.
	peer  Peer
	trunk *Trunk
	// attempt is nil while none is made.
	attempt *attempt
	// ids are those of the last attempts.
	ids []string
	// silent is a process whose media sockets did not answer, and silentUntil how long that counts.
	silent      pin.BootID
	silentUntil time.Time
	// tried is the time of the last attempt.
	tried time.Time
}

// attempt is the making of one trunk, for all callers who want it. done is closed when err is set.
type attempt struct {
	peer Peer
	// ours tells the calls of this node from those of the other one.
	ours   bool
	cancel context.CancelFunc
	done   chan struct{}
	err    error
}

// NewTrunks needs Run.
func NewTrunks(cfg TrunksConfig) *Trunks {
	return &Trunks{cfg: cfg, nodes: map[ring.NodeID]*neighbour{}}
}

// Run renews worn trunks and ends unused ones, and when ctx ends all of them.
func (t *Trunks) Run(ctx context.Context) {
	backoff.Every(ctx, sweepEvery, func() {
		t.cfg.Panics.Catch(t.cfg.Log, "a look at the trunks broke", func() { t.sweep(ctx, time.Now()) })
	})
	t.mu.Lock()
	t.closed = true
	for _, n := range t.nodes {
		if n.attempt != nil {
			n.attempt.cancel()
		}
		if n.trunk != nil {
			n.trunk.end()
		}
	}
	t.mu.Unlock()
	t.running.Wait()
}

// With returns the trunk with a process, and makes it if there is none. Callers at once share one attempt, and an attempt goes on when ctx ends.
// The error is ErrPassedOver while the node is not tried.
func (t *Trunks) With(ctx context.Context, peer Peer) (*Trunk, error) {
	for {
		trunk, a, err := t.find(ctx, peer)
		if trunk != nil || err != nil {
			return trunk, err
		}
		select {
		case <-a.done:
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for a trunk with media node %s: %w", peer.Node, ctx.Err())
		}
		if a.err == nil {
			continue
		}
		// A renewal that failed leaves the former trunk.
		if trunk := t.current(peer); trunk != nil {
			return trunk, nil
		}
		return nil, fmt.Errorf("open a trunk with media node %s: %w", peer.Node, a.err)
	}
}

func (t *Trunks) current(peer Peer) *Trunk {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := t.nodes[peer.Node]; n != nil && n.trunk != nil && n.peer.Boot == peer.Boot && n.trunk.usable(time.Now()) {
		return n.trunk
	}
	return nil
}

// find returns the trunk, or the attempt to wait for.
func (t *Trunks) find(ctx context.Context, peer Peer) (*Trunk, *attempt, error) {
	if trunk, a := t.known(peer); trunk != nil || a != nil {
		return trunk, a, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.neighbour(peer.Node)
	now := time.Now()
	switch {
	case t.closed:
		return nil, nil, errOver
	case t.cfg.Links == nil:
		return nil, nil, errNoLinks
	case peer.Node == t.cfg.Self.Node:
		return nil, nil, errItself
	case n.attempt != nil:
		return nil, n.attempt, nil
	case n.trunk != nil && n.peer.Boot.Newer(peer.Boot):
		return nil, nil, fmt.Errorf("open a trunk with %s of media node %s: %w: it is %s", peer.Boot, peer.Node, ErrOtherBoot, n.peer.Boot)
	case n.silent == peer.Boot && now.Before(n.silentUntil):
		return nil, nil, fmt.Errorf("media node %s: %w", peer.Node, ErrPassedOver)
	}
	return nil, t.call(ctx, n, peer, now), nil
}

// known prefers an attempt to the trunk in use: the other node knows of it, and ends the trunk in use when it succeeds.
func (t *Trunks) known(peer Peer) (*Trunk, *attempt) {
	t.mu.Lock()
	n := t.nodes[peer.Node]
	if n != nil && n.attempt != nil {
		defer t.mu.Unlock()
		return nil, n.attempt
	}
	t.mu.Unlock()
	return t.current(peer), nil
}

// neighbour needs mu.
func (t *Trunks) neighbour(node ring.NodeID) *neighbour {
	n := t.nodes[node]
	if n == nil {
		n = &neighbour{}
		t.nodes[node] = n
	}
	return n
}

// call begins an attempt of this node. It needs mu.
func (t *Trunks) call(ctx context.Context, n *neighbour, peer Peer, now time.Time) *attempt {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	return t.begin(n, &attempt{peer: peer, ours: true, cancel: cancel, done: make(chan struct{})}, now, func(a *attempt) (*Trunk, error) {
		return t.ask(ctx, n, a)
	})
}

// begin makes a the attempt of a neighbour, in place of another one. It needs mu.
func (t *Trunks) begin(n *neighbour, a *attempt, now time.Time, try func(*attempt) (*Trunk, error)) *attempt {
	if former := n.attempt; former != nil {
		former.cancel()
		close(former.done) // Who waits for it waits for this one.
	}
	n.attempt, n.tried = a, now
	t.running.Go(func() {
		defer a.cancel()
		var trunk *Trunk
		err := errBroke
		t.cfg.Panics.Catch(t.cfg.Log, "the opening of a trunk broke", func() { trunk, err = try(a) }, "node", string(a.peer.Node))
		t.finish(n, a, trunk, err)
	})
	return a
}

// finish puts a new trunk in place of the former one.
func (t *Trunks) finish(n *neighbour, a *attempt, trunk *Trunk, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n.attempt != a || t.closed {
		if trunk != nil {
			t.running.Go(trunk.close)
		}
		if n.attempt != a {
			return
		}
		trunk, err = nil, errOver
	}
	n.attempt, a.err = nil, err
	close(a.done)
	if err != nil {
		return
	}
	former := n.trunk
	n.trunk, n.peer = trunk, a.peer
	n.silent, n.silentUntil = "", time.Time{}
	if former != nil {
		former.end()
	}
	log := t.cfg.Log.With("other", string(a.peer.Node), "boot", string(a.peer.Boot))
	log.Info("trunk to a media node opened", "renewed", former != nil)
	t.running.Go(func() {
		<-trunk.Done()
		trunk.close()
		t.mu.Lock()
		last := n.trunk == trunk
		if last {
			n.trunk = nil
		}
		t.mu.Unlock()
		log.Info("trunk to a media node ended", "newer", !last)
	})
}

// sweep looks at every node.
func (t *Trunks) sweep(ctx context.Context, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for id, n := range t.nodes {
		switch {
		case n.trunk == nil:
			if n.attempt == nil && now.Sub(n.tried) > forgottenAfter {
				delete(t.nodes, id)
			}
		case n.trunk.unused(now) >= unusedFor:
			n.trunk.end()
		case n.trunk.worn() && n.attempt == nil && t.cfg.Links != nil && now.Sub(n.tried) >= renewPause:
			t.call(ctx, n, n.peer, now)
		}
	}
}

// ask calls the other node, which opens its end, and dials it.
func (t *Trunks) ask(ctx context.Context, n *neighbour, a *attempt) (*Trunk, error) {
	client, err := t.cfg.Links(a.peer.Control)
	if err != nil {
		return nil, err
	}
	for range crossedTries {
		trunk, err := t.askOnce(ctx, client, n, a)
		if !errors.Is(err, errCrossed) {
			return trunk, err
		}
		// The other node's call replaces this attempt, and ends ctx.
		if !backoff.Sleep(ctx, crossedPause) {
			return nil, ctx.Err()
		}
	}
	return nil, errCrossed
}

func (t *Trunks) askOnce(ctx context.Context, client control.LinksClient, n *neighbour, a *attempt) (*Trunk, error) {
	ours, theirs := transport.NewKeys()
	trunk, conn, err := t.open(a.peer, ours)
	if err != nil {
		return nil, err
	}
	own := conn.Credentials()
	trunk.id = own.Ufrag
	request := &control.TrunkRequest{
		From: t.place(), Boot: string(a.peer.Boot), Keys: theirs.Bytes(), Ufrag: own.Ufrag, Password: own.Password, Media: t.media(),
		Known: t.remember(n, trunk.id),
	}
	reply, err := t.request(ctx, client, request)
	if err == nil {
		var other end
		if other, err = readEnd(reply.GetUfrag(), reply.GetPassword(), reply.GetMedia()); err == nil {
			err = t.reach(ctx, n, a, conn, other)
		}
	}
	if err != nil {
		trunk.close()
		return nil, err
	}
	trunk.up()
	return trunk, nil
}

func (t *Trunks) request(ctx context.Context, client control.LinksClient, request *control.TrunkRequest) (*control.TrunkReply, error) {
	ctx, cancel := context.WithTimeout(ctx, callWithin)
	defer cancel()
	reply, err := client.Trunk(ctx, request)
	switch {
	case err != nil:
		return nil, fmt.Errorf("ask for its end: %w", err)
	case reply.GetCrossed():
		return nil, errCrossed
	}
	return reply, nil
}

// reach dials the other node, and passes it over from now on if nothing answers.
func (t *Trunks) reach(ctx context.Context, n *neighbour, a *attempt, conn *transport.Conn, other end) error {
	within, cancel := context.WithTimeout(ctx, reachWithin)
	defer cancel()
	err := dial(within, conn, other)
	if err == nil || ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
		return err
	}
	t.mu.Lock()
	n.silent, n.silentUntil = a.peer.Boot, time.Now().Add(passedOverFor)
	t.mu.Unlock()
	t.cfg.Log.Warn("a media node is passed over as a branch: its media sockets do not answer this one", "other", string(a.peer.Node), "media", other.media, "for", passedOverFor)
	return fmt.Errorf("%w: %w", ErrPassedOver, err)
}

// dial tries the addresses in turn until ctx ends.
func dial(ctx context.Context, conn *transport.Conn, other end) error {
	for {
		for _, at := range other.media {
			once, cancel := context.WithTimeout(ctx, answerWithin)
			err := conn.Dial(once, at, other.credentials)
			cancel()
			if err == nil || errors.Is(err, net.ErrClosed) || ctx.Err() != nil {
				return err
			}
		}
	}
}

// Answer opens this node's end for a node that calls. The error is ErrOtherBoot, or says what is wrong with the request.
func (t *Trunks) Answer(ctx context.Context, request *control.TrunkRequest) (*control.TrunkReply, error) {
	from, other, keys, err := readRequest(request)
	switch self := t.cfg.Self; {
	case err != nil:
		return nil, err
	case request.GetBoot() != string(self.Boot):
		return nil, fmt.Errorf("%w: %s, and this is %s", ErrOtherBoot, request.GetBoot(), self.Boot)
	case from.Node == self.Node:
		return nil, errItself
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.neighbour(from.Node)
	switch {
	case t.closed || ctx.Err() != nil:
		return nil, errOver
	case n.trunk != nil && n.peer.Boot.Newer(from.Boot):
		return nil, fmt.Errorf("%w: %s calls, and %s is known", ErrOtherBoot, from.Boot, n.peer.Boot)
	case t.crosses(n, from, request.GetKnown()):
		return &control.TrunkReply{Crossed: true}, nil
	}
	trunk, conn, err := t.open(from, keys)
	if err != nil {
		return nil, err
	}
	trunk.id = request.GetUfrag()
	n.ids = append(n.ids, trunk.id)
	joining, cancel := context.WithTimeout(context.WithoutCancel(ctx), joinWithin)
	t.begin(n, &attempt{peer: from, cancel: cancel, done: make(chan struct{})}, time.Now(), func(*attempt) (*Trunk, error) {
		if err := dial(joining, conn, other); err != nil {
			trunk.close()
			return nil, err
		}
		trunk.up()
		return trunk, nil
	})
	own := conn.Credentials()
	return &control.TrunkReply{Ufrag: own.Ufrag, Password: own.Password, Media: t.media()}, nil
}

// crosses reports whether a call of the other node does not count: of two calls at once the one of the node whose name comes first does, and a
// call that the other node made before it knew of the trunk in use is late. It needs mu.
func (t *Trunks) crosses(n *neighbour, from Peer, known []string) bool {
	if a := n.attempt; a != nil && a.ours && a.peer.Boot == from.Boot {
		return t.cfg.Self.Node < from.Node
	}
	return n.trunk != nil && n.peer.Boot == from.Boot && n.trunk.usable(time.Now()) && !slices.Contains(known, n.trunk.id)
}

// open makes this node's end of a trunk.
func (t *Trunks) open(peer Peer, keys transport.Keys) (*Trunk, *transport.Conn, error) {
	trunk := newTrunk()
	conn, err := t.cfg.Media.Open(transport.Config{
		Handler: trunk, Owner: "media node " + string(peer.Node), Keys: keys, Log: t.cfg.Log.With("other", string(peer.Node)),
	})
	if err != nil {
		return nil, nil, err
	}
	trunk.use(conn)
	return trunk, conn, nil
}

// remember notes an attempt, and returns those before it.
func (t *Trunks) remember(n *neighbour, id string) (before []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n.ids = n.ids[max(0, len(n.ids)-idsKept):]
	before = slices.Clone(n.ids)
	n.ids = append(n.ids, id)
	return before
}

func (t *Trunks) place() *control.Place {
	self := t.cfg.Self
	return &control.Place{Node: string(self.Node), Boot: string(self.Boot), Control: self.Control}
}

func (t *Trunks) media() (all []string) {
	for _, at := range t.cfg.Addresses() {
		all = append(all, at.String())
	}
	return all
}
