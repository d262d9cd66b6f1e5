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
	// Every is the least time between two writes of a node.
	Every = time.Second

	writeTimeout = 2 * time.Second
	// maxPeers bounds one pipeline to the store.
	maxPeers = 5000
	// maxGone bounds the leaves of a room that are not written yet.
	maxGone = 1000
	// A roster lives for an hour after its last write, as its pin does. Pins are prolonged every 10 minutes, and a
	// roster only if it is older than this.
	prolongAfter = 20 * time.Minute
)

var errUnwritten = errors.New("not every roster was written")

// Store has the copies of the rosters.
type Store interface {
	// WriteRosters writes the changes, and sets Door of each written one to the current settings. The error is
	// pin.ErrUnreachable if all failed writes were to unreachable masters.
	WriteRosters(ctx context.Context, changes []Change) ([]Outcome, error)
}

// Writer copies the Books of a media node into the store. It is safe for concurrent use.
type Writer struct {
	// Store is set before Run. It may be nil.
	Store Store

	log    *slog.Logger
	panics *panics.Guard
	wake   chan struct{}

	writing sync.Mutex // guards seq
	seq     uint64

	// mu guards the fields below, and all fields of each Book.
	mu    sync.Mutex
	books map[ring.RoomID]*Book
	dirty map[*Book]bool
	// tells says that receivers of webhooks are told.
	tells bool
}

// Book is the roster of an open room. Its methods never wait for the store.
type Book struct {
	writer  *Writer
	room    ring.RoomID
	pin     pin.Pin
	peers   map[string]Peer
	changed map[string]bool
	gone    map[string]Leave
	// written is the Seq of the last write.
	written uint64
	// at is when the last write was, or zero.
	at   time.Time
	door string
	// told hears that door has changed. It may be nil.
	told func()
	sid  string
	// whole is set if the whole roster must be written.
	whole   bool
	settled bool
	closed  bool
}

// NewWriter starts nothing: Run writes.
func NewWriter(guard *panics.Guard, log *slog.Logger) *Writer {
	return &Writer{log: log, panics: guard, wake: make(chan struct{}, 1), books: map[ring.RoomID]*Book{}, dirty: map[*Book]bool{}}
}

// Open begins the roster of a room under the pin p.
func (w *Writer) Open(room ring.RoomID, p pin.Pin) *Book {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.dirty, w.books[room])
	b := &Book{writer: w, room: room, pin: p, peers: map[string]Peer{}, changed: map[string]bool{}, gone: map[string]Leave{}, sid: NewSID(), whole: true}
	w.books[room] = b
	w.due(b)
	return b
}

// Aside returns a book that is never written, for a room that another node writes.
func (w *Writer) Aside() *Book {
	return &Book{writer: w, peers: map[string]Peer{}, changed: map[string]bool{}, gone: map[string]Leave{}}
}

// due has Run write the book. The caller holds mu.
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

// Put adds or changes a peer, and sets its Since.
func (b *Book) Put(p Peer) {
	b.writer.mu.Lock()
	defer b.writer.mu.Unlock()
	old, known := b.peers[p.ID]
	p.Since = old.Since
	if !known {
		p.Since = time.Now()
	}
	if !b.writer.tells {
		old.Shows = p.Shows
	}
	if known && old == p {
		b.peers[p.ID] = p
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

// Follow has heard called whenever the door's settings in the store are others than Settings was. It must not wait, nor call the book.
func (b *Book) Follow(heard func()) {
	b.writer.mu.Lock()
	defer b.writer.mu.Unlock()
	b.told = heard
}

// Settings are those of the room's door that were last read or written, or nothing.
func (b *Book) Settings() string {
	b.writer.mu.Lock()
	defer b.writer.mu.Unlock()
	return b.door
}

// Learn takes settings that a signaling node has read, unless the book has some from the store, which has the last word.
func (b *Book) Learn(settings string) {
	b.writer.mu.Lock()
	defer b.writer.mu.Unlock()
	if b.door == "" {
		b.door = settings
	}
}

// Repin continues the roster under another pin.
func (b *Book) Repin(p pin.Pin) {
	b.writer.mu.Lock()
	defer b.writer.mu.Unlock()
	b.pin, b.whole = p, true
	b.writer.due(b)
}

// Settle says that no more peers will come over from the former owner.
func (b *Book) Settle() {
	b.writer.mu.Lock()
	defer b.writer.mu.Unlock()
	b.whole, b.settled = true, true
	b.writer.due(b)
}

// Close ends the roster of an empty room when all of it is written.
func (b *Book) Close() {
	b.writer.mu.Lock()
	defer b.writer.mu.Unlock()
	b.closed = true
	if b.writer.tells {
		b.writer.due(b)
	}
	if !b.writer.dirty[b] {
		b.forget()
	}
}

// Leave ends the roster of a room that goes on at another node, which writes it from now on.
func (b *Book) Leave() {
	b.writer.mu.Lock()
	defer b.writer.mu.Unlock()
	if !b.closed {
		b.forget()
	}
}

// forget ends the book. The caller holds mu.
func (b *Book) forget() {
	delete(b.writer.dirty, b)
	if b.writer.books[b.room] == b {
		delete(b.writer.books, b.room)
	}
}

// Renew has a room's whole roster written again.
func (w *Writer) Renew(room ring.RoomID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if b := w.books[room]; b != nil {
		b.whole = true
		w.due(b)
	}
}

// Prolong keeps a room's roster alive in the store. Any write does that, so nothing is written if the last write is
// young.
func (w *Writer) Prolong(room ring.RoomID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	b := w.books[room]
	if b == nil {
		return
	}
	// The wall clock counts while the machine is suspended, as the store's clock does. It may also be set back.
	if age := time.Now().Round(0).Sub(b.at.Round(0)); age < 0 || age >= prolongAfter {
		w.due(b)
	}
}

// Tell says whether receivers of webhooks are told. When that begins, all rosters are written.
func (w *Writer) Tell(wanted bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if wanted && !w.tells {
		for _, b := range w.books {
			b.whole = true
			w.due(b)
		}
	}
	w.tells = wanted
}

// Touch has an unchanged room written.
func (w *Writer) Touch(room ring.RoomID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if b := w.books[room]; b != nil {
		w.due(b)
	}
}

// Rewrite writes all rosters. Without an error, the store has the rosters of all current pins.
func (w *Writer) Rewrite(ctx context.Context) error {
	w.mu.Lock()
	for _, b := range w.books {
		b.whole = true
		w.due(b)
	}
	w.mu.Unlock()
	return w.Flush(ctx)
}

// Run writes what is due until ctx ends, and returns nil.
func (w *Writer) Run(ctx context.Context) error {
	failing := false
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-w.wake:
		}
		err := errUnwritten
		w.panics.Catch(w.log, "writing rosters broke", func() { err = w.Flush(ctx) })
		if (err != nil) != failing && ctx.Err() == nil {
			failing = err != nil
			w.log.Warn("writing of rosters", "failing", failing, "error", err)
		}
		if !backoff.Sleep(ctx, Every) {
			return nil
		}
	}
}

// Flush writes what is due. After an error some of it is still due. If the error is pin.ErrUnreachable, only rosters
// on unreachable masters are.
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
		case ctx.Err() != nil:
			// There is no time left for the other rosters.
			return fmt.Errorf("write %d rosters: %w", len(books), ctx.Err())
		case failed == nil || errors.Is(failed, pin.ErrUnreachable):
			failed = fmt.Errorf("write %d rosters: %w", len(books), err)
		}
	}
}

// collect takes the next due changes out of the books. They are put back by settle if they are not written.
func (w *Writer) collect(done map[*Book]bool) (books []*Book, changes []Change) {
	w.mu.Lock()
	defer w.mu.Unlock()
	peers := 0
	for b := range w.dirty {
		if done[b] || peers >= maxPeers {
			continue
		}
		c := Change{Room: b.room, Pin: b.pin, Seq: w.seq, Door: b.door, Told: w.tells, SID: b.sid, Closed: b.closed, Drop: slices.Collect(maps.Values(b.gone))}
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

// write sends the changes and notes their outcomes, also after a panic.
func (w *Writer) write(ctx context.Context, books []*Book, changes []Change, done map[*Book]bool) error {
	outcomes := make([]Outcome, len(books))
	defer func() { w.settle(books, changes, outcomes, done) }()
	found, err := w.Store.WriteRosters(ctx, changes)
	copy(outcomes, found)
	return err
}

// settle notes what became of each change. A change that was not written is due again, as a whole roster.
func (w *Writer) settle(books []*Book, changes []Change, outcomes []Outcome, done map[*Book]bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, b := range books {
		// After a Gap the whole roster is written in the same Flush.
		done[b] = outcomes[i] != Gap
		if outcomes[i] == Written {
			changed := b.door != changes[i].Door
			b.written, b.door, b.sid, b.at = changes[i].Seq, changes[i].Door, changes[i].SID, time.Now()
			if changed && b.told != nil {
				b.told()
			}
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
