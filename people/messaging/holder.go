package messaging

import (
	"math"
	"slices"
	"time"

	"github.com/holdfast-rtc/holdfast/pin"
)

type local struct {
	directory Peer
	clients   []*Client
	batches   map[source]*handed
}

// source names a queue of another node. It has one new batch under way, and one (with again) for clients that lack
// kept messages.
type source struct {
	origin Peer
	room   string
	again  bool
}

// handed is a batch that this node has handed to its clients. A client answers each stream by the highest number that
// it has.
type handed struct {
	number  uint64
	holders []pin.BootID
	view    uint64
	owed    map[*Client]map[stream]uint64
	given   map[*Client]struct{}
	size    int
	some    bool
}

type stream struct {
	from UserID
	name string
}

func (n *Node) deliver(d Deliver) {
	user := n.locals[d.To]
	if user == nil || len(d.Messages) == 0 {
		n.send(d.Origin, d.receipt(OutcomeNone))
		return
	}
	from := source{origin: d.Origin, room: d.Messages[0].Room}
	level := user.level(from)
	switch {
	case d.Previous > level:
		behind := d.receipt(OutcomeBehind)
		behind.Level = level
		n.send(d.Origin, behind)
	case len(d.Ages) > 0 && d.Number <= level:
		if !user.owes(from) {
			n.send(d.Origin, d.receipt(OutcomeAll))
		}
	default:
		n.hand(user, from, d)
	}
}

// hand hands a new batch to the clients here, or answers for a batch that it has handed out before.
func (n *Node) hand(user *local, from source, d Deliver) {
	at := from
	at.again = len(d.Ages) > 0
	h := user.batches[at]
	switch {
	case h != nil && d.Number < h.number && !at.again:
		return
	case h == nil || d.Number != h.number:
		// A client that answers nothing must not be handed more and more.
		if user.unanswered(at)+len(d.Messages) > n.config.MaxUnanswered {
			n.send(d.Origin, d.receipt(OutcomeBusy))
			return
		}
		h = &handed{number: d.Number, owed: make(map[*Client]map[stream]uint64), given: make(map[*Client]struct{}), size: len(d.Messages)}
		user.batches[at] = h
	}
	h.holders, h.view = d.Holders, d.View
	if h.some && len(h.owed) == 0 {
		n.send(d.Origin, d.receipt(OutcomeAll))
		return
	}
	for _, client := range user.clients {
		h.give(client, from, d, n.config.Now())
	}
	switch {
	case len(h.owed) == 0:
		delete(user.batches, at)
		n.send(d.Origin, d.receipt(OutcomeNone))
	case h.some:
		n.send(d.Origin, d.receipt(OutcomeSome))
	}
}

// give hands a batch to a client, once. A client that connected after another client got a message is not handed that
// message, unless it resumed.
func (h *handed) give(client *Client, from source, d Deliver, now time.Time) {
	if _, done := h.given[client]; done || len(d.Ages) > 0 && client.levels[from] >= d.Number {
		return
	}
	h.given[client] = struct{}{}
	if len(client.levels) >= maxLevels {
		clear(client.levels)
	}
	client.levels[from] = max(client.levels[from], d.Number)
	owes := make(map[stream]uint64)
	for i, m := range d.Messages {
		if m.Room != "" && m.Room != client.Room || len(d.Ages) > 0 && !client.Resumed && now.Sub(client.opened) < d.Ages[i] {
			continue
		}
		client.Hand(m)
		owes[stream{m.From, m.Stream}] = m.Seq
	}
	if len(owes) > 0 {
		h.owed[client] = owes
	}
}

// level is the number of the last batch that all clients of the source here have been handed.
func (u *local) level(from source) uint64 {
	level := uint64(math.MaxUint64)
	for _, client := range u.clients {
		if from.room == "" || client.Room == from.room {
			level = min(level, client.levels[from])
		}
	}
	return level
}

// owes reports whether some client here has not answered what it was handed from the source.
func (u *local) owes(from source) bool {
	for other, h := range u.batches {
		if other.origin == from.origin && other.room == from.room && len(h.owed) > 0 {
			return true
		}
	}
	return false
}

func (u *local) unanswered(except source) int {
	total := 0
	for from, h := range u.batches {
		if from != except && len(h.owed) > 0 {
			total += h.size
		}
	}
	return total
}

func (d *Deliver) receipt(outcome Outcome) Receipt {
	return Receipt{Number: d.Number, To: d.To, Outcome: outcome, Holders: d.Holders, View: d.View}
}

func (h *handed) receipt(to UserID, outcome Outcome) Receipt {
	return Receipt{Number: h.number, To: to, Outcome: outcome, Holders: h.holders, View: h.view}
}

// answered notes that a client has answered, and tells the origins. answer takes the streams that the client owes an
// answer for; it returns whether nothing is owed any more, and whether the client has the messages.
func (n *Node) answered(user *local, client *Client, answer func(owes map[stream]uint64) (done, has bool)) {
	for from, h := range user.batches {
		owes := h.owed[client]
		if owes == nil {
			continue
		}
		done, has := answer(owes)
		if !done {
			continue
		}
		delete(h.owed, client)
		first := has && !h.some
		h.some = h.some || has
		// A client that resumes here may need the same batch once more, so it is not remembered as handed out.
		if len(h.owed) == 0 && from.again {
			delete(user.batches, from)
		}
		switch {
		case len(h.owed) == 0 && h.some:
			n.send(from.origin, h.receipt(client.User, OutcomeAll))
		case len(h.owed) == 0:
			delete(user.batches, from)
			n.send(from.origin, h.receipt(client.User, OutcomeNone))
		case first:
			n.send(from.origin, h.receipt(client.User, OutcomeSome))
		}
	}
}

// Open connects a client. Close must follow.
func (n *Node) Open(client *Client) {
	n.mu.Lock()
	defer n.unlock()
	user := n.locals[client.User]
	if user == nil {
		user = &local{batches: make(map[source]*handed)}
		user.directory, _ = n.view.directory(client.User)
		n.locals[client.User] = user
		n.registrar.tell(user.directory, client.User)
		n.registrar.flush(user.directory, n.config.Now())
	}
	client.opened, client.levels = n.config.Now(), make(map[source]uint64)
	user.clients = append(user.clients, client)
}

// Close disconnects a client. The messages that the client has sent are still delivered.
func (n *Node) Close(client *Client) {
	n.mu.Lock()
	defer n.unlock()
	client.closed = true
	user := n.locals[client.User]
	if user == nil || !slices.Contains(user.clients, client) {
		return
	}
	user.clients = slices.DeleteFunc(user.clients, func(other *Client) bool { return other == client })
	n.answered(user, client, func(map[stream]uint64) (done, has bool) { return true, false })
	for _, h := range user.batches {
		delete(h.given, client)
	}
	if len(user.clients) == 0 {
		delete(n.locals, client.User)
		n.registrar.tell(user.directory, client.User)
		n.registrar.flush(user.directory, n.config.Now())
	}
}

// Received says that the client has the messages of the stream up to the number seq.
func (n *Node) Received(client *Client, from UserID, name string, seq uint64) {
	n.mu.Lock()
	defer n.unlock()
	user := n.locals[client.User]
	if user == nil {
		return
	}
	n.answered(user, client, func(owes map[stream]uint64) (done, has bool) {
		if upTo, ok := owes[stream{from, name}]; !ok || upTo > seq {
			return false, false
		}
		delete(owes, stream{from, name})
		return len(owes) == 0, true
	})
}
