package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// A signaling node lets 512 connections of one address wait.
const (
	rushPeople = 1000
	rushEdges  = 3
	rushDials  = 32
)

// arrival is one person's connection, and how the join ended.
type arrival struct {
	url    string
	socket *websocket.Conn
	frame  []byte
	answer wire.Message
	err    error
}

// leastIn must get in: a media node refuses more than 300 people in a room.
const leastIn = 250

// TestThousandFirstJoinsEndOnOneOwner lets a thousand people join a new room at once over three signaling nodes.
// Everybody who gets in is told of one pin, and one media node holds the room.
func TestThousandFirstJoinsEndOnOneOwner(t *testing.T) {
	c := startCluster(t, devcluster.Options{Signaling: rushEdges})
	const room = "rush"
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	people := arrive(ctx, t, c, room)
	defer func() {
		for _, p := range people {
			_ = p.socket.CloseNow()
		}
	}()
	began := time.Now()
	var all sync.WaitGroup
	for i := range people {
		all.Go(func() { people[i].join(ctx) })
	}
	all.Wait()
	took := time.Since(began)

	in := make(map[wire.Placement]int)
	refusals := make(map[wire.Code]int)
	var last wire.Placement
	for i, p := range people {
		switch m := p.answer.(type) {
		case *wire.Joined:
			in[m.Placement]++
			if last.Epoch < m.Epoch {
				last = m.Placement
			}
		case *wire.Error:
			refusals[m.Code]++
		default:
			t.Errorf("person %d was answered %v, %v", i, p.answer, p.err)
		}
	}
	t.Logf("after %v of %d people are in: %v; refused: %v", took, rushPeople, in, refusals)
	if n := in[last]; n < leastIn {
		t.Errorf("%d people are in the room on %s, want %d", n, last.Node, leastIn)
	}
	// One placement, unless the machine stood still and a node was taken for dead: then the room has moved.
	if len(in) != 1 && !strings.Contains(logsOf(t, c), `"msg":"member dead"`) {
		t.Errorf("the room was placed %d times, and no node was taken for dead: %v", len(in), in)
	}
	eventually(t, 30*time.Second, "one SFU node holds the room", func() error {
		byRoom, err := askHoldings(ctx, c)
		if held := byRoom[room]; err == nil && (len(held) != 1 || held[0].Node != string(last.Node) || held[0].Epoch != last.Epoch) {
			err = fmt.Errorf("%w: %+v, want %v", errHeldOtherwise, held, last)
		}
		return err
	})
}

var errHeldOtherwise = errors.New("the room is held otherwise")

func logsOf(t *testing.T, c *devcluster.Cluster) string {
	t.Helper()
	var all strings.Builder
	for i := range rushEdges {
		text, err := c.Logs(t.Context(), fmt.Sprintf("signaling-%d", i+1))
		if err != nil {
			t.Error(err)
		}
		all.WriteString(text)
	}
	return all.String()
}

// arrive opens everybody's connection, those of all signaling nodes alike.
func arrive(ctx context.Context, t *testing.T, c *devcluster.Cluster, room string) []arrival {
	t.Helper()
	var urls []string
	for i := range rushEdges {
		node, err := c.Node(ctx, fmt.Sprintf("signaling-%d", i+1))
		if err != nil {
			t.Fatal(err)
		}
		urls = append(urls, "ws://"+node.Addresses[devcluster.AddressHTTP]+"/ws")
	}
	people := make([]arrival, rushPeople)
	var all sync.WaitGroup
	atOnce := make(chan struct{}, rushDials)
	for i := range people {
		all.Go(func() {
			atOnce <- struct{}{}
			defer func() { <-atOnce }()
			people[i].err = people[i].dial(ctx, c, urls[i%len(urls)], room, fmt.Sprintf("person-%d", i))
		})
	}
	all.Wait()
	for i, p := range people {
		if p.err != nil {
			t.Fatalf("person %d: %v", i, p.err)
		}
	}
	return people
}

func (a *arrival) dial(ctx context.Context, c *devcluster.Cluster, url, room, person string) error {
	token, err := c.Token(room, person)
	if err != nil {
		return err
	}
	a.url = url
	if a.frame, err = wire.Encode(&wire.Join{Token: token, Room: room}); err != nil {
		return err
	}
	return a.connect(ctx)
}

func (a *arrival) connect(ctx context.Context) (err error) {
	a.socket, _, err = websocket.Dial(ctx, a.url, &websocket.DialOptions{Subprotocols: []string{wire.Subprotocol}}) //nolint:bodyclose // The library documents that there is none to close.
	if err == nil {
		a.socket.SetReadLimit(1 << 20) // The roster of a full room does not fit the default.
	}
	return err
}

// join tries again after a refusal that allows it, as the client library does.
func (a *arrival) join(ctx context.Context) {
	for {
		a.ask(ctx)
		refused, isRefusal := a.answer.(*wire.Error)
		if a.err == nil && (!isRefusal || refused.Code == wire.CodeRoomFull) || ctx.Err() != nil {
			return
		}
		_ = a.socket.CloseNow()
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Second/2 + rand.N(2*time.Second)):
		}
		if err := a.connect(ctx); err != nil {
			a.err = err
			return
		}
	}
}

// ask sends the join once and reads the answer to it.
func (a *arrival) ask(ctx context.Context) {
	a.answer = nil
	if a.err = a.socket.Write(ctx, websocket.MessageText, a.frame); a.err != nil {
		return
	}
	_, frame, err := a.socket.Read(ctx)
	if err != nil {
		a.err = err
		return
	}
	a.answer, a.err = wire.DecodeServer(frame)
}
