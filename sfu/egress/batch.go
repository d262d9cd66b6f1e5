package egress

// Batch gathers what one goroutine sends between Begin and End. It is not safe for concurrent use.
type Batch struct {
	conn   *Conn
	socket *socket
	open   bool
	queue  *queue
	// letter is nil before the first packet without Begin.
	letter *letter
}

// NewBatch makes a batch on one of the sockets.
func (c *Conn) NewBatch() *Batch {
	turn := int(c.batches.Add(1)-1) % len(c.sockets)
	return &Batch{conn: c, socket: c.sockets[turn]}
}

// Begin keeps the packets that follow back until End.
func (b *Batch) Begin() { b.open = true }

// End sends what was put in since Begin.
func (b *Batch) End() {
	b.open = false
	if b.queue == nil {
		return
	}
	b.send()
	b.release()
}

// Space returns room for one packet. It is good until the next call, and shorter than asked only if no batch is that
// large. It may send the batch.
func (b *Batch) Space(size int) []byte {
	if b.queue == nil {
		b.queue = b.conn.queue()
	}
	if len(b.queue.packets) == batchPackets || len(b.queue.arena)+size > batchBytes {
		b.send()
	}
	return b.queue.space(size)
}

// Put sends the first n bytes of the last Space at End. Errors at End are only counted. Without Begin it sends them at once and never waits: a
// full socket refuses them.
func (b *Batch) Put(n int, to Address, frame Frame) error {
	// For a zone, net must look its number up.
	if b.open && b.conn.gathers && to.Addr().Zone() == "" {
		b.queue.add(n, to, frame)
		return nil
	}
	err := b.putNow(b.queue.space(n), to, frame)
	if len(b.queue.packets) == 0 {
		b.release()
	}
	return err
}

func (b *Batch) putNow(packet []byte, to Address, frame Frame) error {
	if to.Stream != nil || !b.conn.gathers || to.Addr().Zone() != "" {
		_, err := b.conn.write(packet, to, frame)
		return err
	}
	if b.letter == nil {
		b.letter = newLetter()
	}
	err := b.socket.sender.sendNow(b.letter, packet, to.AddrPort)
	b.conn.count(len(packet), err)
	return err
}

func (b *Batch) send() {
	if len(b.queue.packets) == 0 {
		return
	}
	for i := range b.queue.flows {
		if f := &b.queue.flows[i]; f.to.Stream != nil {
			f.to.Stream.putFlow(b.queue, f)
		}
	}
	b.socket.sender.send(b.queue)
	b.queue.reset()
}

func (b *Batch) release() {
	b.conn.putBack(b.queue)
	b.queue = nil
}

// The sizes keep a batch within a core's cache.
const (
	batchPackets = 256
	batchBytes   = 256 << 10
)

type queue struct {
	// arena never grows, so slices of it stay valid.
	arena   []byte
	packets []queued
	flows   []flow
	// byTo has indices into flows.
	byTo   map[Address]int
	latest int
	outbox *outbox
}

type flow struct {
	to Address
	// first and last are indices into packets.
	first, last int
}

type queued struct {
	start, end int
	// next is 0 at the end, which is unambiguous because packet 0 is always a first one.
	next  int
	frame Frame
}

func newQueue() *queue {
	return &queue{
		arena:   make([]byte, 0, batchBytes),
		packets: make([]queued, 0, batchPackets),
		flows:   make([]flow, 0, batchPackets),
		byTo:    make(map[Address]int),
		outbox:  newOutbox(),
	}
}

func (q *queue) space(size int) []byte {
	start := len(q.arena)
	end := min(start+size, batchBytes)
	return q.arena[start:end:end]
}

func (q *queue) add(n int, to Address, frame Frame) {
	start, at := len(q.arena), len(q.packets)
	q.arena = q.arena[:start+n]
	q.packets = append(q.packets, queued{start: start, end: start + n, frame: frame})
	if at > 0 && q.flows[q.latest].to == to {
		q.extend(q.latest, at)
		return
	}
	if i, ok := q.byTo[to]; ok {
		q.extend(i, at)
		return
	}
	q.latest = len(q.flows)
	q.byTo[to] = q.latest
	q.flows = append(q.flows, flow{to: to, first: at, last: at})
}

func (q *queue) extend(i, at int) {
	q.packets[q.flows[i].last].next = at
	q.flows[i].last = at
	q.latest = i
}

func (q *queue) payload(i int) []byte { return q.arena[q.packets[i].start:q.packets[i].end] }

func (q *queue) reset() {
	q.arena, q.packets, q.flows, q.latest = q.arena[:0], q.packets[:0], q.flows[:0], 0
	clear(q.byTo)
}
