package cluster

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-rtc/holdfast/ring"
)

func TestQuorum(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	live := &View{Nodes: map[ring.NodeID]Node{"a": {}, "b": {}}, Signaling: map[ring.NodeID]Node{"c": {}}}
	named := func(id ring.NodeID) Node {
		if id == "c" {
			return Node{ID: id, Role: RoleSignaling}
		}
		return Node{ID: id, Role: RoleSFU}
	}
	die := func(ids ...ring.NodeID) []Event {
		var events []Event
		for _, id := range ids {
			events = append(events, Event{Kind: EventDead, Node: named(id)})
		}
		return events
	}
	for _, test := range []struct {
		name   string
		events []Event
		after  time.Duration
		want   bool
	}{
		{"nobody missing", nil, 0, true},
		{"two of five missing", die("d", "e"), 0, true},
		{"half missing is no majority", die("d", "e", "f"), 0, false},
		{"one of them came back", append(die("d", "e", "f"), Event{Kind: EventJoined, Node: named("d")}), 0, true},
		{"one of them had said goodbye", append(die("d", "e", "f"), Event{Kind: EventLeft, Node: named("d")}), 0, true},
		{"a restart is not missing", die("a", "b", "c", "d"), 0, true},
		{"the long gone are forgotten", die("d", "e", "f"), forgetDead + time.Second, true},
	} {
		q := NewQuorum(nil)
		for _, event := range test.events {
			q.note(event, now)
		}
		if got := q.majorityIn(live, now.Add(test.after)); got != test.want {
			t.Errorf("%s: majority %t, want %t", test.name, got, test.want)
		}
	}
}

// A subscriber that was too slow gets no more events: the quorum subscribes again.
func TestQuorumSubscribesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &Cluster{}
		q := NewQuorum(c)
		ctx, cancel := context.WithCancel(t.Context())
		var ended sync.WaitGroup
		ended.Go(func() { _ = q.Run(ctx) }) // it returns nil
		latest := func() *subscription {
			synctest.Wait()
			c.mu.Lock()
			defer c.mu.Unlock()
			return c.subscriptions[len(c.subscriptions)-1]
		}
		latest().end()
		<-time.After(2 * subscribeAgain)
		latest().push(Event{Kind: EventDead, Node: Node{ID: "a", Role: RoleSFU}})
		synctest.Wait()
		cancel()
		ended.Wait()
		if len(q.missing) != 1 {
			t.Errorf("%d nodes are missing", len(q.missing))
		}
	})
}
