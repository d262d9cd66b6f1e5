package messaging

import (
	"slices"

	"github.com/holdfast-rtc/holdfast/pin"
)

type local struct {
	directory Peer
	clients   []*Client
	batches   map[source]*handed
}

// source is another node's queue, with one batch under way.
type source struct {
	origin Peer
	room   string
}

// handed is a batch at clients, who answer by stream up to a number.
type handed struct {
	number  uint64
	holders []pin.BootID
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
		n.receipt(d.Origin, d.Number, d.To, OutcomeNone, d.Holders)
		return
	}
	from := source{d.Origin, d.Messages[0].Room}
	h := user.batches[from]
	switch {
	case h != nil && d.Number < h.number:
		return
	case h == nil || d.Number > h.number:
		if user.unanswered(from)+len(d.Messages) > n.config.MaxUnanswered {
			n.receipt(d.Origin, d.Number, d.To, OutcomeBusy, d.Holders)
			return
		}
		h = &handed{number: d.Number, owed: make(map[*Client]map[stream]uint64), given: make(map[*Client]struct{}), size: len(d.Messages)}
		user.batches[from] = h
	}
	h.holders = d.Holders
	if h.some && len(h.owed) == 0 {
		n.receipt(d.Origin, d.Number, d.To, OutcomeAll, d.Holders)
		return
	}
	for _, client := range user.clients {
		h.give(client, d.Messages)
	}
	switch {
	case len(h.owed) == 0:
		delete(user.batches, from)
		n.receipt(d.Origin, d.Number, d.To, OutcomeNone, d.Holders)
	case h.some:
		n.receipt(d.Origin, d.Number, d.To, OutcomeSome, d.Holders)
	}
}

func (h *handed) give(client *Client, messages []Message) {
	if _, done := h.given[client]; done {
		return
	}
	h.given[client] = struct{}{}
	owes := make(map[stream]uint64)
	for _, m := range messages {
		if m.Room == "" || m.Room == client.Room {
			client.Hand(m)
			owes[stream{m.From, m.Stream}] = m.Seq
		}
	}
	if len(owes) > 0 {
		h.owed[client] = owes
	}
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

func (n *Node) receipt(origin Peer, number uint64, to UserID, outcome Outcome, holders []pin.BootID) {
	n.send(origin, Receipt{Number: number, To: to, Outcome: outcome, Holders: holders})
}

// answered settles what a client owes.
func (n *Node) answered(user *local, client *Client, settle func(owes map[stream]uint64) (done, has bool)) {
	for from, h := range user.batches {
		owes := h.owed[client]
		if owes == nil {
			continue
		}
		done, has := settle(owes)
		if !done {
			continue
		}
		delete(h.owed, client)
		first := has && !h.some
		h.some = h.some || has
		switch {
		case len(h.owed) == 0 && h.some:
			n.receipt(from.origin, h.number, client.User, OutcomeAll, h.holders)
		case len(h.owed) == 0:
			delete(user.batches, from)
			n.receipt(from.origin, h.number, client.User, OutcomeNone, h.holders)
		case first:
			n.receipt(from.origin, h.number, client.User, OutcomeSome, h.holders)
		}
	}
}

// Open connects a client; Close must follow.
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
	user.clients = append(user.clients, client)
}

// Close leaves what the client sent.
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

// Received says that client has the stream up to seq.
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
