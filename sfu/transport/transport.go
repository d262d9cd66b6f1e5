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

	"github.com/holdfast-rtc/holdfast/panics"
	"github.com/holdfast-rtc/holdfast/sfu/egress"
)

const (
	// receiveBytes is the largest datagram that is read. Browsers stay below 1,200 bytes for media; Firefox's ClientHello takes more.
	receiveBytes = 1500
	// watchEvery is how often silence is looked for.
	watchEvery = 250 * time.Millisecond
)

// Socket is the address of all connections, UDP and TCP. egress.Conn is one.
type Socket interface {
	// Readers is how many goroutines receive, each with a number of its own.
	Readers() int
	// Receive gives take every packet that comes to a reader until Close, then it returns an error that is net.ErrClosed. The packet is
	// take's for the time of the call. What one address sends should come to one reader: else it is out of order. gone is told of a TCP
	// connection that has ended. Both are called by many goroutines.
	Receive(reader int, take func(b []byte, from egress.Address), gone func(from egress.Address)) error
	Write(b []byte, to egress.Address) (int, error)
	Close() error
}

// Transport is one address and its connections. Its methods are safe for concurrent use.
type Transport struct {
	socket Socket
	panics *panics.Guard
	log    *slog.Logger
	clock  *clock
	checks sync.Pool // of *checker

	mu        sync.RWMutex // guards the fields below, and the addresses of every connection
	conns     map[*Conn]struct{}
	byUser    map[string]*Conn // by each of their ICE user fragments
	byAddress map[egress.Address]*Conn
}

// New makes a transport on a bound address; Run makes it work.
func New(socket Socket, guard *panics.Guard, log *slog.Logger) *Transport {
	return &Transport{
		socket: socket, panics: guard, log: log, clock: newClock(), checks: sync.Pool{New: func() any { return &checker{} }},
		conns: map[*Conn]struct{}{}, byUser: map[string]*Conn{}, byAddress: map[egress.Address]*Conn{},
	}
}

// Run serves the connections until the socket is closed, and returns nil then. It closes the socket when that cannot be read. The context
// ends what goes on beside the reading: the caller closes the socket as well.
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
		_ = t.socket.Close() // The other readers end as well.
	}
	reading.Wait()
	return err
}

// read is one reader.
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

// receive tells packets apart as RFC 7983 section 7 has it. What comes from an address that no check has come from is dropped,
// unless it is a check.
func (t *Transport) receive(b []byte, from egress.Address, now time.Time) {
	defer t.survive(from)
	switch first := b[0]; {
	case first <= 3:
		k := t.checks.Get().(*checker) //nolint:forcetypeassert // that is what the pool makes
		if len(b) >= stunHeaderBytes && binary.BigEndian.Uint16(b) == stunBindingSuccess {
			t.answer(b, from, k)
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
			c.media(b, now)
		}
	}
}

// survive ends the connection whose packet made us panic; all others go on. What a packet can do once it could do again, so the
// connection takes no more.
func (t *Transport) survive(from egress.Address) {
	caught := panics.Of(recover())
	if caught == nil {
		return
	}
	t.panics.Report(t.log, caught, "a packet broke the node's reading of it: connection ended", "from", from.String())
	if c := t.at(from); c != nil {
		c.fail()
	}
}

// on calls do, and ends the connection if that panics. One that is closed by then is told nothing.
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

// watch looks for silence.
func (t *Transport) watch(ctx context.Context) {
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			for _, c := range t.list() {
				t.on(c, now, (*Conn).settle)
			}
		}
	}
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

// serve has checks for a user fragment go to a connection.
func (t *Transport) serve(user string, c *Conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.byUser[user] = c
	t.conns[c] = struct{}{}
}

// forgetUser ends serve for one user fragment.
func (t *Transport) forgetUser(user string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.byUser, user)
}

// remove takes a connection that is closed off every table.
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
