// Package panics keeps what one peer sends from ending the process when handling it panics.
//
// Whoever handles input recovers, reports the panic to the process's Guard and ends the connection that the input came on. The Guard
// counts, logs with the stack at a bounded rate, and remembers whose input it was: who does it twice is refused for a while.
// It does not know what a half-done handler leaves behind: that is its caller's to put right.
package panics

import (
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/loglimit"
)

const (
	// Strikes of one peer.
	refusedAfter    = 2
	strikeLife      = 10 * time.Minute
	rememberedPeers = 10_000
	// A stack has some 5 KB.
	linesPerSecond = 0.1
	lineBurst      = 10
)

// Error is a recovered panic.
type Error struct {
	Fault any
	Stack []byte
}

func (e *Error) Error() string { return fmt.Sprintf("panic: %v", e.Fault) }

// Of wraps recover's result, in the deferred function; nil for nil.
func Of(fault any) *Error {
	if fault == nil {
		return nil
	}
	return &Error{Fault: fault, Stack: debug.Stack()}
}

// Catch runs f and returns its panic, or nil. It neither counts nor logs: that is for callers that report the panic later,
// with what they know by then.
func Catch(f func()) (caught *Error) {
	defer func() { caught = Of(recover()) }()
	f()
	return nil
}

// Guard is one process's. It is safe for concurrent use.
type Guard struct {
	count atomic.Uint64
	lines *loglimit.Limiter

	mu      sync.Mutex
	strikes map[string]strikes
}

type strikes struct {
	number int
	last   time.Time
}

// New has counted nothing.
func New() *Guard {
	return &Guard{lines: loglimit.New(linesPerSecond, lineBurst), strikes: make(map[string]strikes)}
}

// Report counts and logs a panic; what is the log's message.
func (g *Guard) Report(log *slog.Logger, caught *Error, what string, attributes ...any) {
	total := g.count.Add(1)
	if unlogged, ok := g.lines.Next(); ok {
		log.Error(what, append(attributes, "fault", fmt.Sprint(caught.Fault), "total", total, "unlogged", unlogged, "stack", string(caught.Stack))...)
	}
}

// Catch runs f, counts and logs a panic of it, and reports whether there was one. It is the wall around a peer's message, a socket's
// packet, a task of a loop, a request, and the root of a goroutine. What is the message of the log.
func (g *Guard) Catch(log *slog.Logger, what string, f func(), attributes ...any) bool {
	caught := Catch(f)
	if caught != nil {
		g.Report(log, caught, what, attributes...)
	}
	return caught != nil
}

// Count is of reported panics.
func (g *Guard) Count() uint64 { return g.count.Load() }

// Strike remembers whose input caused a panic. Strangers must not choose the name.
func (g *Guard) Strike(who string) {
	now := time.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	s, known := g.strikes[who]
	if !known && len(g.strikes) >= rememberedPeers {
		for name, old := range g.strikes {
			if now.Sub(old.last) >= strikeLife {
				delete(g.strikes, name)
			}
		}
		if len(g.strikes) >= rememberedPeers {
			return
		}
	}
	if now.Sub(s.last) >= strikeLife {
		s.number = 0
	}
	g.strikes[who] = strikes{number: s.number + 1, last: now}
}

// Refuses reports whether who has too many strikes.
func (g *Guard) Refuses(who string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.strikes[who]
	return s.number >= refusedAfter && time.Since(s.last) < strikeLife
}
