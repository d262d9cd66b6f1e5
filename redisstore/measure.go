package redisstore

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// Calls is told of each round trip. The operation is one of a bounded list: commands that this package sends, and its scripts.
type Calls interface {
	Called(operation string, took time.Duration, failed bool)
}

// Measure tells calls of each round trip from now on.
func (s *Store) Measure(calls Calls) { s.measure.calls.Store(&calls) }

// measure is a hook of go-redis.
type measure struct{ calls atomic.Pointer[Calls] }

func (m *measure) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		began := time.Now()
		conn, err := next(ctx, network, address)
		m.told("dial", began, err)
		return conn, err
	}
}

func (m *measure) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		began := time.Now()
		err := next(ctx, cmd)
		m.told(operationOf(cmd), began, err)
		return err
	}
}

func (m *measure) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		began := time.Now()
		err := next(ctx, cmds)
		if len(cmds) > 0 {
			m.told(operationOf(cmds[0]), began, err)
		}
		return err
	}
}

func (m *measure) told(operation string, began time.Time, err error) {
	calls := m.calls.Load()
	if calls == nil {
		return
	}
	// The end of a caller's context is not the store's failure unless the store was late, which the time shows.
	_, answered := errors.AsType[redis.Error](err)
	(*calls).Called(operation, time.Since(began), err != nil && !answered && !errors.Is(err, context.Canceled))
}

// operationOf names a command, or one of this package's scripts.
func operationOf(cmd redis.Cmder) string {
	name := cmd.Name()
	switch name {
	case "eval":
		if args := cmd.Args(); len(args) > 1 {
			if text, ok := args[1].(string); ok {
				return scriptName(text)
			}
		}
		return "script"
	case "get", "set", "mget", "del", "ping", "hello", "info", "cluster", "time", "lrange", "xrange", "xrevrange", "scan", "hgetall", "hmget", "zrange", "pexpire", "expire", "multi", "client", "readonly":
		return name
	default:
		return "other"
	}
}

// scriptName tells the scripts apart. It compares lengths first, so it costs nothing to speak of.
func scriptName(text string) string {
	for _, s := range [...]struct{ text, name string }{
		{swapScript, "swap_pin"},
		{claimScript, "note_claim"},
		{bootScript, "begin_boot"},
		{renewScript, "begin_incarnation"},
		{rosterScript, "write_roster"},
		{addScript, "presence_add"},
		{removeScript, "presence_remove"},
		{sweepScript, "presence_sweep"},
		{heartbeatScript, "presence_renew"},
		{askScript, "presence_ask"},
		{followScript, "presence_follow"},
		{appendEventsScript, "append_events"},
		{enterScript, "waiting_enter"},
		{checkInScript, "waiting_check_in"},
		{doorScript, "waiting_door"},
	} {
		if s.text == text {
			return s.name
		}
	}
	return "script"
}
