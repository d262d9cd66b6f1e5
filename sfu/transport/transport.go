package transport

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/backoff"
	"github.com/holdfast-rtc/holdfast/internal/panics"
	"github.com/holdfast-rtc/holdfast/sfu/egress"
)

const (
	// receiveBytes is enough for the ClientHello of Firefox, which is longer than media packets.
	receiveBytes = 1500
	watchEvery   = 250 * time.Millisecond
)

// Socket is the address of all connections, for UDP and TCP.
type Socket interface {
	// Readers returns how many goroutines receive.
	Readers() int
	// Receive gives take each packet, for the time of the call, until Close; then its error is net.ErrClosed. One
	// address's packets should come to one reader, in order. gone hears of ended TCP connections.
	Receive(reader int, take func(b []byte, from egress.Address), gone func(from egress.Address)) error
	Write(b []byte, to egress.Address) (int, error)
	Close() error
}

// Transport is one address and its connections. It is safe for concurrent use.
type Transport struct {
	socket Socket
	panics *panics.Guard
	log    *slog.Logger
	clock  *clock
	checks sync.Pool

	mu        sync.RWMutex // guards the fields below, and every connection's addresses
	conns     map[*Conn]struct{}
	byUser    map[string]*Conn
	byAddress map[egress.Address]*Conn
	// held has the clients of other nodes, by our user fragment.
	held map[string]*Held
}

// New returns a Transport on a bound address. It needs Run.
func New(socket Socket, guard *panics.Guard, log *slog.Logger) *Transport {
	return &Transport{
		socket: socket, panics: guard, log: log, clock: newClock(), checks: sync.Pool{New: func() any { return &checker{} }},
		conns: map[*Conn]struct{}{}, byUser: map[string]*Conn{}, byAddress: map[egress.Address]*Conn{}, held: map[string]*Held{},
	}
}

// Run serves until the socket is closed, and returns nil then. The caller also closes the socket when it ends ctx.
func (t *Transport) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var clocks, reading sync.WaitGroup
	clocks.Go(func() { t.clock.run(ctx) })
	clocks.Go(func() { t.watch(ctx) })
	defer clocks.Wait()
	defer cancel()
	ended := make(chan error, t.socket.Readers())
	for reader := range t.socket.Readers() {
		reading.Go(func() { ended <- t.read(reader) }) //nolint:contextcheck // a reader has no context; a handshake ends with its connection
	}
	err := <-ended
	if err != nil {
		_ = t.socket.Close()
	}
	reading.Wait()
	return err
}

func (t *Transport) read(reader int) error {
	err := t.socket.Receive(reader, func(b []byte, from egress.Address) {
		if len(b) > 0 && len(b) <= receiveBytes {
			t.receive(b, from, time.Now())
		}
	}, t.gone)
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return fmt.Errorf("read media socket: %w", err)
}

// receive tells packets apart (RFC 7983 section 7).
func (t *Transport) receive(b []byte, from egress.Address, now time.Time) {
	defer t.catchPacket(from)
	switch first := b[0]; {
	case first <= 3:
		k := t.checks.Get().(*checker) //nolint:forcetypeassert // that is what the pool makes
		if len(b) >= stunHeaderBytes && binary.BigEndian.Uint16(b) == stunBindingSuccess {
			t.answer(b, from, now, k)
		} else {
			t.check(b, from, now, k)
		}
		t.checks.Put(k)
	case first >= 20 && first <= 63:
		if c := t.at(from); c != nil {
			c.record(b, now)
		}
	case first >= 128 && first <= 191:
		if c := t.at(from); c != nil {
			c.media(b, from, now)
		}
	}
}

func (t *Transport) catchPacket(from egress.Address) {
	caught := panics.Of(recover())
	if caught == nil {
		return
	}
	t.panics.Report(t.log, caught, "a packet broke the node's reading of it: connection ended", "from", from.String())
	if c := t.at(from); c != nil {
		c.fail()
	}
}

func (t *Transport) on(c *Conn, now time.Time, do func(*Conn, time.Time)) {
	defer func() {
		if caught := panics.Of(recover()); caught != nil {
			t.panics.Report(c.cfg.Log, caught, "a connection broke the node's care for it: connection ended")
			c.fail()
		}
	}()
	do(c, now)
}

func (t *Transport) at(address egress.Address) *Conn {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.byAddress[address]
}

func (t *Transport) of(user string) *Conn {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.byUser[user]
}

func (t *Transport) watch(ctx context.Context) {
	backoff.Every(ctx, watchEvery, func() {
		now := time.Now()
		for _, c := range t.list() {
			t.on(c, now, (*Conn).keep)
			t.on(c, now, (*Conn).look)
		}
		for _, h := range t.listHeld() {
			h.keep(now)
		}
	})
}

func (t *Transport) list() []*Conn {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if len(t.conns) == 0 {
		return nil
	}
	list := make([]*Conn, 0, len(t.conns))
	for c := range t.conns {
		list = append(list, c)
	}
	return list
}

func (t *Transport) serve(user string, c *Conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.byUser[user] = c
	t.conns[c] = struct{}{}
}

func (t *Transport) forgetUser(user string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.byUser, user)
}

func (t *Transport) remove(c *Conn, users []user) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.conns, c)
	t.clock.forget(c)
	for _, u := range users {
		delete(t.byUser, u.ufrag)
	}
	for _, address := range c.addresses {
		t.drop(address)
	}
	c.addresses = nil
}
