package control

import (
	"errors"
	"strings"
	"testing"
)

// TestAKeyIsReplacedStepByStep walks two nodes and a pool through the rotation of their key, one after the other, in the
// order that is documented. At no moment is one of them refused, and a stream that stands goes on.
func TestAKeyIsReplacedStepByStep(t *testing.T) {
	const other = testKeyText + "-next"
	both, next := testKeyText+"\n"+other, other+"\n\n"+testKeyText+"\n"
	one, two, ours := mustKey(t, testKeyText), mustKey(t, testKeyText), mustKey(t, testKeyText)
	nodes := []*node{
		startNode(t, one, "127.0.0.1:0", "1769000000000-00000001"),
		startNode(t, two, "127.0.0.1:0", "1769000000000-00000002"),
	}
	ctx := testContext(t)
	pool := startPool(t, ours, DefaultConfig())
	client, err := pool.Client(nodes[0].addr)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := client.Watch(ctx, &WatchRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{both, next, other} {
		for _, key := range []ClusterKey{one, ours, two} {
			if err := key.Replace(text); err != nil {
				t.Fatal(err)
			}
			for _, n := range nodes {
				if _, err := pool.HelloAt(ctx, n.addr); err != nil { // over a new connection
					t.Fatalf("after a step: %v", err)
				}
			}
		}
	}
	nodes[0].media.heartbeat <- struct{}{}
	if heartbeat, err := stream.Recv(); err != nil || heartbeat.GetSeq() != 2 {
		t.Fatalf("the stream from before says %v, %v", heartbeat, err)
	}
	old := startPool(t, mustKey(t, testKeyText), DefaultConfig())
	if _, err := old.HelloAt(ctx, nodes[0].addr); err == nil || !strings.Contains(err.Error(), errWrongKey.Error()) {
		t.Fatalf("with the key that was dropped: %v, want %q in it", err, errWrongKey)
	}
}

func TestABadReplacementChangesNothing(t *testing.T) {
	key, err := mustKey(t, testKeyText).In("red")
	if err != nil {
		t.Fatal(err)
	}
	before := key.Marks()
	if err := key.Replace("short"); !errors.Is(err, errShortKey) {
		t.Errorf("Replace = %v", err)
	}
	if err := key.Replace(strings.Repeat(testKeyText+"\n", 3)); err == nil {
		t.Error("three keys are taken")
	}
	if got := key.Marks(); len(got) != 1 || got[0] != before[0] {
		t.Errorf("the marks are %v, want %v", got, before)
	}
	if err := (ClusterKey{}).Replace(testKeyText); err == nil {
		t.Error("the key of no cluster is replaced")
	}
}
