package chaos

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/backoff"
	"github.com/holdfast-rtc/holdfast/internal/child"
	"github.com/holdfast-rtc/holdfast/lab/devcluster"
	"github.com/holdfast-rtc/holdfast/lab/peer"
)

const (
	messageEvery = 100 * time.Millisecond
	// The inRoom messengers are in the capped room, which nobody leaves; the others are in no room.
	inRoom  = 2
	outside = 2
	// A connection is owed a message if it was there for attachedFor before.
	attachedFor = time.Second
)

// Letter is a direct message between two messengers.
type Letter struct {
	From, To string
	Number   int // increases with each letter of the sender
	At       time.Time
	State    string // the final one; empty = none
	Got      []int  // copies, by the receiver's connection
	Owed     []bool // whether the connection was there all the time
}

// exchange has messengers write to each other through all faults, and records each letter's fate.
type exchange struct {
	mu         sync.Mutex // guards the fields below
	messengers []*messenger
	numbers    map[string]int     // of the last letter, by sender
	letters    map[letter]*Letter // not judged yet
	bySeq      map[string]map[uint64]letter
	last       map[received]int // the number of the last letter
	late       []string         // repeated, or after a successor
}

type letter struct {
	from   string
	number int
}

type received struct {
	at   *messenger
	from string
}

// messenger is one connection. A user's first one writes.
type messenger struct {
	name     string
	index    int // among the user's connections
	peer     *peer.Peer
	messages *peer.Messages
	away     time.Time // last seen without a socket, or with another one
	lost     int       // sockets, when last seen
}

type envelope struct {
	From   string `json:"from"`
	Number int    `json:"number"`
}

func newExchange() *exchange {
	return &exchange{
		numbers: make(map[string]int), letters: make(map[letter]*Letter),
		bySeq: make(map[string]map[uint64]letter), last: make(map[received]int),
	}
}

// enlist adds a connection of a user. Set its peer before the exchange runs.
func (x *exchange) enlist(name string) *messenger {
	x.mu.Lock()
	defer x.mu.Unlock()
	m := &messenger{name: name, index: len(x.connections(name)), away: time.Now()}
	m.messages = peer.NewMessages(
		func(from string, body json.RawMessage) { x.took(m, from, body) },
		func(_ string, seq uint64, state string) { x.told(m.name, seq, state) },
	)
	x.messengers = append(x.messengers, m)
	return m
}

func (x *exchange) connections(name string) []*messenger {
	var all []*messenger
	for _, m := range x.messengers {
		if m.name == name {
			all = append(all, m)
		}
	}
	return all
}

func (x *exchange) took(at *messenger, from string, body json.RawMessage) {
	x.mu.Lock()
	defer x.mu.Unlock()
	var e envelope
	if json.Unmarshal(body, &e) != nil || e.From != from {
		x.late = append(x.late, fmt.Sprintf("%s got %q from %s, who did not write it", at.name, body, from))
		return
	}
	key := received{at, from}
	if e.Number <= x.last[key] {
		x.late = append(x.late, fmt.Sprintf("%s got letter %d of %s after letter %d", at.name, e.Number, from, x.last[key]))
	}
	x.last[key] = max(x.last[key], e.Number)
	if l := x.letters[letter{from, e.Number}]; l != nil && at.index < len(l.Got) {
		l.Got[at.index]++
	}
}

func (x *exchange) told(from string, seq uint64, state string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if l := x.letters[x.bySeq[from][seq]]; l != nil {
		l.State = state
	}
	delete(x.bySeq[from], seq)
}

// run has each user write to each other one in turn, until ctx ends.
func (x *exchange) run(ctx context.Context) {
	for n := 0; backoff.Sleep(ctx, messageEvery); n++ {
		x.mu.Lock()
		var writers []*messenger
		for _, m := range x.messengers {
			m.look()
			if m.index == 0 {
				writers = append(writers, m)
			}
		}
		x.mu.Unlock()
		from := writers[n%len(writers)]
		to := writers[(n+1+n/len(writers)%(len(writers)-1))%len(writers)]
		x.write(from, to.name)
	}
}

// look sees whether the connection is there, and still the same. The exchange's lock must be held.
func (m *messenger) look() {
	if m.peer == nil {
		return
	}
	if now := m.peer.Totals(); !now.Attached || now.SocketsLost != m.lost {
		m.away, m.lost = time.Now(), now.SocketsLost
	}
}

// introduce writes two letters for each pair at once, so that a short run has something to judge.
func (x *exchange) introduce() {
	for range 2 {
		for _, from := range x.messengers {
			for _, to := range x.messengers {
				if from.index == 0 && to.index == 0 && from != to {
					x.write(from, to.name)
				}
			}
		}
	}
}

func (x *exchange) write(from *messenger, to string) {
	x.mu.Lock()
	x.numbers[from.name]++ // an unused number breaks nothing
	l := &Letter{From: from.name, To: to, Number: x.numbers[from.name], At: time.Now(), Got: make([]int, len(x.connections(to)))}
	x.mu.Unlock()
	body, _ := json.Marshal(envelope{l.From, l.Number}) // never fails
	from.messages.Send(to, body, func(seq uint64) {
		x.mu.Lock()
		defer x.mu.Unlock()
		key := letter{l.From, l.Number}
		x.letters[key] = l
		if x.bySeq[l.From] == nil {
			x.bySeq[l.From] = make(map[uint64]letter)
		}
		x.bySeq[l.From][seq] = key
	})
}

// missing says which connection was told of as reached, and was not, or not yet.
func (x *exchange) missing(until time.Time) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, l := range x.letters {
		for i, m := range x.connections(l.To) {
			if !l.At.After(until) && l.State == stateDelivered && l.Got[i] == 0 && m.away.Before(l.At.Add(-attachedFor)) {
				return fmt.Errorf("connection %d of %s has not got letter %d of %s", i+1, l.To, l.Number, l.From)
			}
		}
	}
	return nil
}

func (x *exchange) unanswered(until time.Time) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, l := range x.letters {
		if !l.At.After(until) && l.State == "" {
			return fmt.Errorf("%s was told nothing of its letter %d to %s", l.From, l.Number, l.To)
		}
	}
	return nil
}

// collect takes the letters written up to then.
func (x *exchange) collect(until time.Time) (letters []Letter, late []string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for key, l := range x.letters {
		if l.At.After(until) {
			continue
		}
		for _, m := range x.connections(l.To) {
			m.look()
			l.Owed = append(l.Owed, m.away.Before(l.At.Add(-attachedFor)))
		}
		letters = append(letters, *l)
		delete(x.letters, key)
	}
	slices.SortFunc(letters, func(a, b Letter) int { return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.Number, b.Number)) })
	late, x.late = x.late, nil
	return letters, late
}

// gatherLetters waits for the final state of all letters written during the fault, and for each to come where it must.
func (c *Chaos) gatherLetters(ctx context.Context, w *World) {
	_ = poll(ctx, c.options.patience.settle, func() error { return c.crowd.exchange.unanswered(w.Until) }) // the verdict says it
	_ = poll(ctx, rosterLimit, func() error { return c.crowd.exchange.missing(w.Until) })                  // as above
	w.Letters, w.LateLetters = c.crowd.exchange.collect(w.Until)
}

// correspond connects those in no room, one of them twice and once more at each signaling node, and has all messengers write.
func (c *crowd) correspond(ctx context.Context) error {
	pages := []string{c.chaos.page, c.chaos.page, c.chaos.page}
	if c.chaos.cluster.Supervised() {
		for _, n := range c.chaos.nodes(ctx, devcluster.RoleSignaling) {
			pages = append(pages, "http://"+n.Addresses[child.AddressHTTP]+"/")
		}
	}
	for i, page := range pages {
		number := 1
		if i == outside {
			number = outside
		}
		m := c.exchange.enlist(fmt.Sprintf("%soutside-%d", c.chaos.prefix(), number))
		token, err := c.chaos.cluster.MessengerToken("", m.name, 0)
		if err != nil {
			return err
		}
		stack, err := peer.NewStack(peer.VideoNone)
		if err != nil {
			return err
		}
		if m.peer, err = peer.New(peer.Options{URL: page, Token: token, Stack: stack, Messages: m.messages}, slog.New(slog.DiscardHandler)); err != nil {
			return err
		}
		c.wg.Go(func() { _ = m.peer.Run(c.living) }) // who is refused has no socket, which stops the run
	}
	err := poll(ctx, joinLimit, func() error {
		for _, m := range c.exchange.messengers {
			if !m.peer.Totals().Attached {
				return errors.New(m.name + " has no socket")
			}
		}
		return nil
	})
	if err == nil {
		c.exchange.introduce()
		c.wg.Go(func() { c.exchange.run(c.living) })
	}
	return err
}

func (w *World) letterStates() map[string]int {
	states := make(map[string]int)
	for _, l := range w.Letters {
		states[cmp.Or(l.State, "unanswered")]++
	}
	return states
}

const stateDelivered = "delivered"

// MessagesAnswered compares what senders were told with what receivers took.
func MessagesAnswered(w *World) Verdict {
	v := verdict("messages once or answered", "a direct message reaches each living connection of its receiver once, in the order of its sender, or its sender is told that it may not have")
	delivered := 0
	for _, l := range w.Letters {
		got := 0
		for i, times := range l.Got {
			got += times
			switch {
			case times > 1:
				v.broken("letter %d of %s came %d times to connection %d of %s", l.Number, l.From, times, i+1, l.To)
			case times == 0 && l.State == stateDelivered && l.Owed[i]:
				v.broken("letter %d of %s is %s, and connection %d of %s has not got it", l.Number, l.From, l.State, i+1, l.To)
			}
		}
		switch {
		case l.State == "":
			v.broken("%s was told nothing of its letter %d to %s", l.From, l.Number, l.To)
		case l.State == stateDelivered && got == 0:
			v.broken("letter %d of %s is %s, and no connection of %s has got it", l.Number, l.From, l.State, l.To)
		case l.State == stateDelivered:
			delivered++
		}
	}
	for _, late := range w.LateLetters {
		v.broken("%s", late)
	}
	if delivered == 0 {
		return v.unchecked("no message was delivered")
	}
	return *v
}
