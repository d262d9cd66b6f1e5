package nodelink

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/testkit"
	"github.com/holdfast-rtc/holdfast/people/messaging"
	"github.com/holdfast-rtc/holdfast/redisstore/storetest"
)

// network is nodes in one process, each with as many users.
type network interface {
	// send returns when the receiver, a user of any node, has the message.
	send(from, to int)
	bytes() int64
	cpu() time.Duration // besides this process's
}

// BenchmarkBesideABroker sends messages between users of 2 to 64 nodes: by this package, and by a Redis Pub/Sub channel
// that every node reads, where a sender is not even told that the message arrived. At each node 64 users wait for an answer at any
// time. Run it with -benchtime 40000x.
func BenchmarkBesideABroker(b *testing.B) {
	for _, nodes := range []int{2, 4, 8, 16, 32, 64} {
		b.Run(fmt.Sprintf("direct-%d", nodes), func(b *testing.B) { measure(b, nodes*64, newDirect(b, nodes, 64)) })
		b.Run(fmt.Sprintf("broker-%d", nodes), func(b *testing.B) { measure(b, nodes*64, newBrokered(b, nodes, 64)) })
	}
}

// BenchmarkUnbatched has one user of each node wait, so that hardly two frames travel together: what a message costs at most. Run it with
// -benchtime 5000x.
func BenchmarkUnbatched(b *testing.B) {
	for _, nodes := range []int{2, 4, 8, 16, 32} {
		b.Run(fmt.Sprint(nodes), func(b *testing.B) { measure(b, nodes, newDirect(b, nodes, 1)) })
	}
}

func measure(b *testing.B, users int, n network) {
	run := func(messages int) {
		var left atomic.Int64
		left.Store(int64(messages))
		var senders sync.WaitGroup
		for from := range users {
			senders.Go(func() {
				for to := from * 7919; left.Add(-1) >= 0; to += 31 {
					n.send(from, to%users)
				}
			})
		}
		senders.Wait()
	}
	run(users) // connections are made
	bytes, cpu, began := n.bytes(), n.cpu()+used(), time.Now()
	b.ResetTimer()
	run(b.N)
	b.StopTimer()
	count := float64(b.N)
	b.ReportMetric(count/time.Since(began).Seconds(), "messages/s")
	b.ReportMetric(float64(n.bytes()-bytes)/count, "B/message")
	b.ReportMetric(float64((n.cpu()+used()-cpu).Microseconds())/count, "µsCPU/message")
}

// used is this process's CPU.
func used() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

const benchBody = `"Have you a minute? I would like to show you something."`

type direct struct {
	nodes   []*Links
	clients []*messaging.Client
	answers []chan struct{}
	seqs    []uint64
	passed  atomic.Int64
}

func newDirect(b *testing.B, nodes, senders int) network {
	b.Helper()
	d := &direct{}
	w := newTown(b)
	w.log = slog.New(slog.DiscardHandler)
	w.wrap = func(lis net.Listener) net.Listener { return &countedListener{lis, &d.passed} }
	for i := range nodes {
		links, _ := w.node(fmt.Sprint("node-", i))
		d.nodes = append(d.nodes, links)
	}
	for i := range nodes * senders {
		node := d.nodes[i%nodes]
		answer := make(chan struct{}, 1)
		client := &messaging.Client{User: messaging.UserID(fmt.Sprint("user-", i)), Tell: func(s messaging.Status) {
			if s.State != messaging.StateAccepted {
				answer <- struct{}{}
			}
		}}
		// A client answers from elsewhere.
		acks := make(chan messaging.Message, 1024)
		client.Hand = func(m messaging.Message) { acks <- m }
		go func() {
			for m := range acks {
				node.Received(client, m.From, m.Stream, m.Seq)
			}
		}()
		b.Cleanup(func() { close(acks) })
		node.Open(client)
		d.clients, d.answers = append(d.clients, client), append(d.answers, answer)
	}
	d.seqs = make([]uint64, len(d.clients))
	testkit.Within(b, generous, "all users are registered", func() error {
		total := 0
		for _, links := range d.nodes {
			total += links.Counters().Registered
		}
		if total != len(d.clients) {
			return fmt.Errorf("%d of %d", total, len(d.clients))
		}
		return nil
	})
	return d
}

func (d *direct) send(from, to int) {
	d.seqs[from]++
	sender := d.clients[from]
	m := messaging.Message{From: sender.User, Name: "Ada", Stream: "s-5f1c", Seq: d.seqs[from], Kind: "text", Body: []byte(benchBody), At: 1}
	if d.nodes[from%len(d.nodes)].Submit(sender, d.clients[to].User, m) == nil {
		<-d.answers[from]
	}
}

func (d *direct) bytes() int64       { return d.passed.Load() }
func (d *direct) cpu() time.Duration { return 0 }

type countedListener struct {
	net.Listener

	bytes *atomic.Int64
}

func (l *countedListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	return storetest.Counted(conn, l.bytes), err
}

// brokered: each node reads every message and looks whether the receiver is its own.
type brokered struct {
	b       *testing.B
	server  *storetest.Process
	brokers []*storetest.Broker
	arrived []chan struct{}
	passed  atomic.Int64
}

type published struct {
	To, From, Name, Stream, Kind string
	Seq                          uint64
	Body                         json.RawMessage
	At                           int64
	Sender                       int
}

func newBrokered(b *testing.B, nodes, senders int) network {
	b.Helper()
	n := &brokered{b: b, server: storetest.StartAlone(b).Processes[0]}
	for range nodes * senders {
		n.arrived = append(n.arrived, make(chan struct{}, 1))
	}
	for node := range nodes {
		own := map[string]bool{}
		for i := node; i < len(n.arrived); i += nodes {
			own[fmt.Sprint("user-", i)] = true
		}
		n.brokers = append(n.brokers, storetest.NewBroker(b, n.server, &n.passed, func(text string) {
			var m published
			if json.Unmarshal([]byte(text), &m) == nil && own[m.To] {
				n.arrived[m.Sender] <- struct{}{}
			}
		}))
	}
	b.Cleanup(func() {
		for _, broker := range n.brokers {
			broker.Close()
		}
	})
	return n
}

func (n *brokered) send(from, to int) {
	text, err := json.Marshal(published{
		To: fmt.Sprint("user-", to), From: fmt.Sprint("user-", from), Name: "Ada", Stream: "s-5f1c", Kind: "text", Seq: 1, Body: []byte(benchBody), At: 1, Sender: from,
	})
	if err != nil {
		n.b.Error(err)
		return
	}
	n.brokers[from%len(n.brokers)].Publish(string(text))
	<-n.arrived[from]
}

func (n *brokered) bytes() int64       { return n.passed.Load() }
func (n *brokered) cpu() time.Duration { return n.server.CPU(n.b) }
