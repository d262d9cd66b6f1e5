//go:build !node

package devcluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
)

const (
	// miniredis expires keys only when told the time.
	storeTick = 100 * time.Millisecond
	// A clock that was stepped advances in such ticks.
	clockTick = 10 * time.Millisecond
	// The asker gets its answer before its connection breaks.
	breakAfter = 50 * time.Millisecond
)

// Store is a Redis in memory, over TCP. It answers INFO as a real server does, so that nodes learn its clock and Sentinels
// can watch it. Two commands of its own hurt it: one steps its clock, one breaks all connections.
type Store struct {
	redis    *miniredis.Miniredis
	listener net.Listener
	run      string        // the run ID
	stepped  chan struct{} // told to Run

	mu    sync.Mutex // guards the fields below
	conns map[net.Conn]struct{}
	ahead time.Duration // of the real time
}

// OpenStore binds the store to host:port.
func OpenStore(address string) (*Store, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("open the embedded store: %w", err)
	}
	s := &Store{
		redis: miniredis.NewMiniRedis(), listener: listener, run: randomHex(20),
		stepped: make(chan struct{}, 1), conns: make(map[net.Conn]struct{}),
	}
	// Dial is what starts miniredis without a listener of its own.
	first, err := s.redis.Dial()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open the embedded store: %w", err), listener.Close())
	}
	s.redis.Server().SetPreHook(s.serve)
	return s, first.Close()
}

// Address returns the store's host:port.
func (s *Store) Address() string { return s.listener.Addr().String() }

// Run serves and expires keys until ctx ends, then closes the store.
func (s *Store) Run(ctx context.Context) error {
	defer s.redis.Close()
	var accepting sync.WaitGroup
	accepting.Go(s.accept)
	defer accepting.Wait()
	defer s.listener.Close()
	tick := time.NewTicker(storeTick)
	defer tick.Stop()
	last := time.Now()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.stepped:
			tick.Reset(clockTick)
		case <-tick.C:
			now := time.Now()
			s.redis.FastForward(now.Sub(last))
			last = now
			s.tell(now)
		}
	}
}

func (s *Store) accept() {
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		s.conns[conn] = struct{}{}
		s.mu.Unlock()
		s.redis.Server().ServeConn(&storeConn{conn, s})
	}
}

type storeConn struct {
	net.Conn

	of *Store
}

// Close also forgets the connection.
func (c *storeConn) Close() error {
	c.of.mu.Lock()
	delete(c.of.conns, c.Conn)
	c.of.mu.Unlock()
	return c.Conn.Close()
}

func (s *Store) breakConnections() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for conn := range s.conns {
		conn.Close()
	}
}

// tell sets the clock of miniredis, which stands still between two ticks once it was set.
func (s *Store) tell(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ahead != 0 {
		s.redis.SetTime(now.Add(s.ahead).UTC())
	} else {
		s.redis.SetTime(time.Time{})
	}
}

// step moves the clock. As in Redis, where a key expires at a time, keys live shorter or longer by the step.
func (s *Store) step(by time.Duration) {
	s.mu.Lock()
	s.ahead += by
	s.mu.Unlock()
	s.tell(time.Now())
	s.redis.FastForward(by)
	select {
	case s.stepped <- struct{}{}:
	default:
	}
}

// serve answers what miniredis does not, or not as Redis does.
func (s *Store) serve(c *server.Peer, command string, args ...string) bool {
	switch strings.ToUpper(command) {
	case "INFO":
		if len(args) == 1 && (strings.EqualFold(args[0], "clients") || strings.EqualFold(args[0], "stats")) {
			return false
		}
		c.WriteBulk(s.info())
	case commandStep:
		if len(args) != 1 {
			c.WriteError("ERR give milliseconds")
			return true
		}
		ms, err := strconv.ParseInt(args[0], 10, 64)
		if err != nil {
			c.WriteError("ERR give milliseconds")
			return true
		}
		s.step(time.Duration(ms) * time.Millisecond)
		c.WriteOK()
	case commandBreak:
		time.AfterFunc(breakAfter, s.breakConnections)
		c.WriteOK()
	default:
		return false
	}
	return true
}

func (s *Store) info() string {
	s.mu.Lock()
	now := time.Now().Add(s.ahead)
	s.mu.Unlock()
	return strings.Join([]string{
		"# Server", "run_id:" + s.run, "server_time_usec:" + strconv.FormatInt(now.UnixMicro(), 10), "",
		"# Memory", "maxmemory_policy:noeviction", "",
		"# Replication", "role:master", "connected_slaves:0", "",
	}, "\r\n")
}
