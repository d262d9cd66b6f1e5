package redisstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-rtc/holdfast/internal/panics"
)

// maxSentinels bounds how many are asked. A set has three or five.
const maxSentinels = 16

var (
	errNoSentinel = errors.New("no Sentinel can be asked")
	errDemoted    = errors.New("another server became master meanwhile")
)

// sentinels finds the master of a Sentinel set in place of go-redis's failover client. That client asks one Sentinel, and
// gives it up only if the look-up fails before its caller's context ends: a frozen one took the store away for good. Here
// each look-up has its own time-out, which no caller's context shortens, and asks all Sentinels at once.
//
// The first answer counts, unless its configuration is older than the last one: a Sentinel that was frozen or cut off
// during a failover names the former master. Such an answer counts only if no other Sentinel has a newer one.
type sentinels struct {
	// name is the master's name in the set.
	name    string
	timeout time.Duration
	options func(address string) *redis.Options
	connect func(ctx context.Context, network, address string) (net.Conn, error)
	log     *slog.Logger
	panics  *panics.Guard

	mu  sync.Mutex // guards the fields below, all of each lookup, and asked and told of each sentinel
	all map[string]*sentinel
	// lookup is the one under way, or nil.
	lookup *lookup
	// master is the address in the last answer.
	master string
	// epoch is that of the last answer's configuration.
	epoch  int64
	conns  map[*masterConn]bool
	closed bool
}

type sentinel struct {
	client *redis.SentinelClient
	// asked says that its answer is awaited.
	asked bool
	// told says that it has named the other Sentinels.
	told bool
}

// lookup is shared by all who need the master's address meanwhile.
type lookup struct {
	done    chan struct{}
	awaited int
	// older is the answer with the newest of the configurations that are older than the known one.
	older string
	// epoch is that of older.
	epoch int64
	errs  []error
	over  bool
	// address is the result, unless err is.
	address string
	err     error
}

func newSentinels(a *address, guard *panics.Guard, log *slog.Logger) *sentinels {
	s := &sentinels{
		name: a.master, timeout: a.options.DialTimeout, options: a.sentinelOptions, connect: a.options.Dialer,
		log: log, panics: guard, all: map[string]*sentinel{}, conns: map[*masterConn]bool{},
	}
	for _, host := range a.hosts {
		s.add(host)
	}
	return s
}

// add takes a Sentinel into the set. It needs mu, unless nobody else knows s yet.
func (s *sentinels) add(address string) {
	if s.all[address] == nil && len(s.all) < maxSentinels && !s.closed {
		s.all[address] = &sentinel{client: redis.NewSentinelClient(s.options(address))}
	}
}

func (s *sentinels) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, one := range s.all {
		_ = one.client.Close()
	}
}

// find returns the master's address. It waits at most until ctx ends; the look-up then goes on for the callers that
// come next.
func (s *sentinels) find(ctx context.Context) (string, error) {
	l := s.begin() //nolint:contextcheck // a look-up must not end with its first caller
	select {
	case <-l.done:
		return l.address, l.err
	case <-ctx.Done():
		return "", fmt.Errorf("ask the Sentinels: %w", ctx.Err())
	}
}

// begin leaves out Sentinels that have not answered an earlier look-up, so that a frozen one costs one question at a time.
func (s *sentinels) begin() *lookup {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lookup != nil {
		return s.lookup
	}
	l := &lookup{done: make(chan struct{})}
	for _, one := range s.all {
		if !one.asked && !s.closed {
			one.asked = true
			l.awaited++
			go s.ask(l, one)
		}
	}
	s.lookup = l
	if l.awaited == 0 {
		s.end(l, "", errNoSentinel)
	}
	return l
}

func (s *sentinels) ask(l *lookup, one *sentinel) {
	ctx, cancel := context.WithTimeout(context.Background(), s.timeout)
	defer cancel()
	var address string
	var epoch int64
	err := errBroke
	s.panics.Catch(s.log, "a Sentinel's answer broke its reading", func() { address, epoch, err = s.question(ctx, one) })
	s.heard(l, one, address, epoch, err)
	if err == nil {
		s.panics.Catch(s.log, "a Sentinel's list of the others broke its reading", func() { s.learn(ctx, one) })
	}
}

// question asks for the epoch only of another master than the last one. The epoch comes second: then the address may be
// older than its epoch, which the next look-up corrects, and never newer, which would keep the address for good.
func (s *sentinels) question(ctx context.Context, one *sentinel) (address string, epoch int64, err error) {
	parts, err := one.client.GetMasterAddrByName(ctx, s.name).Result()
	if err != nil {
		return "", 0, fmt.Errorf("ask a Sentinel for the master: %w", err)
	}
	if len(parts) != 2 {
		return "", 0, errAnswer
	}
	address = net.JoinHostPort(parts[0], parts[1])
	s.mu.Lock()
	known := address == s.master
	s.mu.Unlock()
	if known {
		return address, 0, nil
	}
	state, err := one.client.Master(ctx, s.name).Result()
	if err == nil {
		// An unreadable epoch counts as the oldest.
		epoch, _ = strconv.ParseInt(state["config-epoch"], 10, 64)
	}
	return address, epoch, nil
}

func (s *sentinels) heard(l *lookup, one *sentinel, address string, epoch int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one.asked = false
	l.awaited--
	switch {
	case err != nil:
		l.errs = append(l.errs, err)
	// The answer counts even if the look-up is over.
	case address == s.master || epoch >= s.epoch:
		s.follow(address, epoch)
		s.end(l, address, nil)
	case l.older == "" || epoch > l.epoch:
		l.older, l.epoch = address, epoch
	}
	switch {
	case l.awaited > 0 || l.over:
	// All Sentinels that answered have older configurations: the set may have been set up anew.
	case l.older != "":
		s.log.Warn("every Sentinel that answers names an older master: following it", "master", l.older, "epoch", l.epoch)
		s.epoch = l.epoch
		s.follow(l.older, l.epoch)
		s.end(l, l.older, nil)
	default:
		s.end(l, "", errors.Join(l.errs...))
	}
}

// end finishes a look-up. It needs mu.
func (s *sentinels) end(l *lookup, address string, err error) {
	if l.over {
		return
	}
	l.over, l.address, l.err = true, address, err
	s.lookup = nil
	close(l.done)
}

// follow takes over a new master. It breaks the connections to the former one, which may be cut off and refuse writes
// without closing them. It needs mu.
func (s *sentinels) follow(address string, epoch int64) {
	s.epoch = max(s.epoch, epoch)
	if s.master == address {
		return
	}
	if s.master != "" {
		s.log.Info("the store has another master", "master", address, "former", s.master)
	}
	s.master = address
	for conn := range s.conns {
		if conn.address != address {
			delete(s.conns, conn)
			// TLS may wait for an answer to its goodbye.
			go conn.Conn.Close()
		}
	}
}

// learn adds the Sentinels that one knows.
func (s *sentinels) learn(ctx context.Context, one *sentinel) {
	s.mu.Lock()
	told := one.told
	s.mu.Unlock()
	if told {
		return
	}
	others, err := one.client.Sentinels(ctx, s.name).Result()
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	one.told = true
	for _, other := range others {
		if other["ip"] != "" && other["port"] != "" {
			s.add(net.JoinHostPort(other["ip"], other["port"]))
		}
	}
}

// dial connects to the master, whatever address is asked for. It fails as patientDialer does.
func (s *sentinels) dial(ctx context.Context, network, _ string) (net.Conn, error) {
	address, err := s.find(ctx)
	if err != nil {
		return broken(err), nil
	}
	conn, err := s.connect(ctx, network, address)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.master != address {
		// TLS may wait for an answer to its goodbye.
		go conn.Close()
		return broken(errDemoted), nil
	}
	c := &masterConn{Conn: conn, of: s, address: address}
	s.conns[c] = true
	// go-redis looks through this interface whether the other end has closed an idle connection.
	if raw, ok := conn.(syscall.Conn); ok {
		return struct {
			*masterConn
			syscall.Conn
		}{c, raw}, nil
	}
	return c, nil
}

// masterConn is a connection to the master.
type masterConn struct {
	net.Conn

	of      *sentinels
	address string
}

func (c *masterConn) Close() error {
	c.of.mu.Lock()
	delete(c.of.conns, c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}
