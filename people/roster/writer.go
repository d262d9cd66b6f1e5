package roster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/backoff"
	"github.com/holdfast-rtc/holdfast/internal/panics"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

const (
	// Every is the least time between a node's writes.
	Every = time.Second

	writeTimeout = 2 * time.Second
	// Of one pipeline.
	maxPeers = 5000
	// Unwritten leaves of a room.
	maxGone = 1000
	// A roster lives for an hour after a write, as its pin does, and pins are prolonged every 10 minutes.
	prolongAfter = 20 * time.Minute
)

var errUnwritten = errors.New("not every roster was written")

// Store has the copies.
type Store interface {
	// WriteRosters sets Door of each Written Change to the current one. The error is pin.ErrUnreachable if all that
	// failed are.
	WriteRosters(ctx context.Context, changes []Change) ([]Outcome, error)
}

// Writer copies a media node's Books into the store. It is safe for concurrent use.
type Writer struct {
	Store Store // set before Run; nil: none

	log    *slog.Logger
	panics *panics.Guard
	wake   chan struct{}

	writing sync.Mutex // guards seq
	seq     uint64

	mu    sync.Mutex // guards the fields below, and all of each Book
	books map[ring.RoomID]*Book
	dirty map[*Book]bool
}

// Book is an open room's roster. It never waits for the store.
type Book struct {
	writer  *Writer
	room    ring.RoomID
	pin     pin.Pin
	peers   map[string]Peer
	changed map[string]bool
	gone    map[string]Leave
	written uint64    // Seq
	at      time.Time // of that write; zero: never
	door    string
	whole   bool // all is due
	settled bool
	closed  bool
}

// NewWriter needs Run.
func NewWriter(guard *panics.Guard, log *slog.Logger) *Writer {
	return &Writer{log: log, panics: guard, wake: make(chan struct{}, 1), books: map[ring.RoomID]*Book{}, dirty: map[*Book]bool{}}
}

// Open begins a room's roster under p.
func (w *Writer) Open(room ring.RoomID, p pin.Pin) *Book {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.dirty, w.books[room])
	b := &Book{writer: w, room: room, pin: p, peers: map[string]Peer{}, changed: map[string]bool{}, gone: map[string]Leave{}, whole: true}
	w.books[room] = b
	w.due(b)
	return b
}

// due needs mu.
func (w *Writer) due(b *Book) {
	if w.books[b.room] != b {
		return
	}
	w.dirty[b] = true
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// Put adds or changes a peer, and sets Since.
func (b *Book) Put(p Peer) {
	b.writer.mu.Lock()
	defer b.writer.mu.Unlock()
	old, known := b.peers[p.ID]
	p.Since = old.Since
	if !known {
		p.Since = time.Now()
	}
	if known && old == p {
		return
	}
	b.peers[p.ID], b.changed[p.ID] = p, true
	delete(b.gone, p.ID)
	b.writer.due(b)
}

// Drop removes a peer.
func (b *Book) Drop(id string, lastSeen time.Time) {
	b.writer.mu.Lock()
	defer b.writer.mu.Unlock()
	p, known := b.peers[id]
	if !known {
		return
	}
	delete(b.peers, id)
	delete(b.changed, id)
	if len(b.gone) >= maxGone {
		clear(b.gone)
		b.whole = true
	}
	b.gone[id] = Leave{Peer: p, LastSeen: lastSeen}
	b.writer.due(b)
}

// Repin continues under another pin.
func (b *Book) Repin(p pin.Pin) {
	b.writer.mu.Lock()
	defer b.writer.mu.Unlock()
	b.pin, b.whole = p, true
	b.writer.due(b)
}

// Settle ends the wait for the last owner's peers.
func (b *Book) Settle() {
	b.writer.mu.Lock()
	defer b.writer.mu.Unlock()
	b.whole, b.settled = true, true
	b.writer.due(b)
}

// Close ends an empty room's roster when all is written.
func (b *Book) Close() {
	b.writer.mu.Lock()
	defer b.writer.mu.Unlock()
	b.closed = true
	if !b.writer.dirty[b] {
		b.forget()
	}
}

// Leave ends the roster of a room that goes on elsewhere.
func (b *Book) Leave() {
	b.writer.mu.Lock()
	defer b.writer.mu.Unlock()
	if !b.closed {
		b.forget()
	}
}

// forget needs mu.
func (b *Book) forget() {
	delete(b.writer.dirty, b)
	if b.writer.books[b.room] == b {
		delete(b.writer.books, b.room)
	}
}

// Renew writes a room's whole roster.
func (w *Writer) Renew(room ring.RoomID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if b := w.books[room]; b != nil {
		b.whole = true
		w.due(b)
	}
}

// Prolong keeps a room's roster in the store: any write does, so one that was written lately is left alone.
func (w *Writer) Prolong(room ring.RoomID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	b := w.books[room]
	if b == nil {
		return
	}
	// The wall clock goes on in a suspended machine, as the store's does. It may also be set back.
	if age := time.Now().Round(0).Sub(b.at.Round(0)); age < 0 || age >= prolongAfter {
		w.due(b)
	}
}

// Touch writes an unchanged room.
func (w *Writer) Touch(room ring.RoomID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if b := w.books[room]; b != nil {
		w.due(b)
	}
}

// Rewrite writes all rosters. Without an error the store has those with current pins.
func (w *Writer) Rewrite(ctx context.Context) error {
	w.mu.Lock()
	for _, b := range w.books {
		b.whole = true
		w.due(b)
	}
	w.mu.Unlock()
	return w.Flush(ctx)
}

// Run writes until ctx ends, and returns nil.
func (w *Writer) Run(ctx context.Context) error {
	failing := false
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-w.wake:
		}
		err := errUnwritten
		w.panics.Survives(w.log, "writing rosters broke", func() { err = w.Flush(ctx) })
		if (err != nil) != failing && ctx.Err() == nil {
			failing = err != nil
			w.log.Warn("writing of rosters", "failing", failing, "error", err)
		}
		if !backoff.Sleep(ctx, Every) {
			return nil
		}
	}
}

// Flush writes what is due. After an error some still is: only of unreachable masters if it is pin.ErrUnreachable.
func (w *Writer) Flush(ctx context.Context) error {
	w.writing.Lock()
	defer w.writing.Unlock()
	if w.Store == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	var failed error
	for done := map[*Book]bool{}; ; {
		w.seq++
		books, changes := w.collect(done)
		if len(books) == 0 {
			return failed
		}
		switch err := w.write(ctx, books, changes, done); {
		case err == nil:
		case ctx.Err() != nil: // the rest is not tried
			return fmt.Errorf("write %d rosters: %w", len(books), ctx.Err())
		case failed == nil || errors.Is(failed, pin.ErrUnreachable):
			failed = fmt.Errorf("write %d rosters: %w", len(books), err)
		}
	}
}

func (w *Writer) collect(done map[*Book]bool) (books []*Book, changes []Change) {
	w.mu.Lock()
	defer w.mu.Unlock()
	peers := 0
	for b := range w.dirty {
		if done[b] || peers >= maxPeers {
			continue
		}
		c := Change{Room: b.room, Pin: b.pin, Seq: w.seq, Door: b.door, Drop: slices.Collect(maps.Values(b.gone))}
		if b.whole {
			c.Settled = b.settled
			c.Put = slices.Collect(maps.Values(b.peers))
		} else {
			c.After = b.written
			for id := range b.changed {
				c.Put = append(c.Put, b.peers[id])
			}
		}
		peers += len(c.Put) + len(c.Drop)
		b.whole = false
		clear(b.changed)
		clear(b.gone)
		delete(w.dirty, b)
		books, changes = append(books, b), append(changes, c)
	}
	return books, changes
}

// write settles books also after a panic.
func (w *Writer) write(ctx context.Context, books []*Book, changes []Change, done map[*Book]bool) error {
	outcomes := make([]Outcome, len(books))
	defer func() { w.settle(books, changes, outcomes, done) }()
	found, err := w.Store.WriteRosters(ctx, changes)
	copy(outcomes, found)
	return err
}

func (w *Writer) settle(books []*Book, changes []Change, outcomes []Outcome, done map[*Book]bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, b := range books {
		done[b] = outcomes[i] != Gap // a Gap is followed by the whole
		if outcomes[i] == Written {
			b.written, b.door, b.at = changes[i].Seq, changes[i].Door, time.Now()
		}
		if b.closed && !w.dirty[b] && (outcomes[i] == Written || outcomes[i] == Fenced) {
			b.forget()
		}
		if outcomes[i] == Written {
			continue
		}
		b.whole = true
		for _, l := range changes[i].Drop {
			if _, back := b.peers[l.Peer.ID]; !back && len(b.gone) < maxGone {
				b.gone[l.Peer.ID] = l
			}
		}
		w.due(b)
	}
}
