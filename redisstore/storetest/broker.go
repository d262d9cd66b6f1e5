package storetest

import (
	"context"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Broker is one process's end of a Redis Pub/Sub channel that all processes read: the usual way to reach a client of
// another process, to compare ours with. Bytes counts what passes the sockets.
type Broker struct {
	client *redis.Client
	heard  *redis.PubSub
	out    chan string
	ends   sync.WaitGroup
}

const brokerChannel = "messages"

// NewBroker calls hear for each message of anybody. Publishing waits for nothing and gathers what waits, as a good client does.
func NewBroker(t testing.TB, p *Process, bytes *atomic.Int64, hear func(text string)) *Broker {
	t.Helper()
	options := p.options()
	options.Dialer = func(ctx context.Context, network, address string) (net.Conn, error) {
		var dialer net.Dialer
		conn, err := dialer.DialContext(ctx, network, address)
		return Counted(conn, bytes), err
	}
	b := &Broker{client: redis.NewClient(options), out: make(chan string, 4096)}
	b.heard = b.client.Subscribe(t.Context(), brokerChannel)
	if _, err := b.heard.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
	messages := b.heard.Channel(redis.WithChannelSize(4096), redis.WithChannelSendTimeout(time.Minute))
	b.ends.Go(func() {
		for m := range messages {
			hear(m.Payload)
		}
	})
	b.ends.Go(func() { b.publish(context.WithoutCancel(t.Context())) })
	return b
}

// Publish takes a message to all.
func (b *Broker) Publish(text string) { b.out <- text }

func (b *Broker) publish(ctx context.Context) {
	for text := range b.out {
		_, _ = b.client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			for more := true; more; {
				pipe.Publish(ctx, brokerChannel, text)
				select {
				case text, more = <-b.out:
				default:
					more = false
				}
			}
			return nil
		})
	}
}

// Close ends it. Nobody may publish any more.
func (b *Broker) Close() {
	close(b.out)
	_ = b.heard.Close()
	b.ends.Wait()
	_ = b.client.Close()
}

// CPU is what the server has used.
func (p *Process) CPU(t testing.TB) time.Duration {
	t.Helper()
	client := p.client()
	defer client.Close()
	text, err := client.Info(t.Context(), "cpu").Result()
	if err != nil {
		t.Fatal(err)
	}
	var total float64
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		if name == "used_cpu_sys" || name == "used_cpu_user" {
			seconds, _ := strconv.ParseFloat(value, 64)
			total += seconds
		}
	}
	return time.Duration(total * float64(time.Second))
}

// Counted adds what passes conn.
func Counted(conn net.Conn, bytes *atomic.Int64) net.Conn { return &countedConn{conn, bytes} }

type countedConn struct {
	net.Conn

	bytes *atomic.Int64
}

func (c *countedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.bytes.Add(int64(n))
	return n, err
}

func (c *countedConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.bytes.Add(int64(n))
	return n, err
}
