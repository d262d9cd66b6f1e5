package control

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/holdfast-rtc/holdfast/internal/testkit"
)

func TestBootAtTellsARefusalFromSilence(t *testing.T) {
	key := mustKey(t, testKeyText)
	config := DefaultConfig()
	config.HelloTimeout = 100 * time.Millisecond
	pool := startPool(t, key, config)

	silent, err := net.Listen("tcp", "127.0.0.1:0") // Its kernel accepts, nobody answers: a frozen process.
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	if _, err := pool.HelloAt(testContext(t), silent.Addr().String()); err == nil || errors.Is(err, ErrRefused) {
		t.Fatalf("a silent node: %v, want an error that is not ErrRefused", err)
	}
	gone := silent.Addr().String()
	_ = silent.Close()
	if _, err := pool.HelloAt(testContext(t), gone); !errors.Is(err, ErrRefused) {
		t.Fatalf("a closed port: %v, want ErrRefused", err)
	}
	if _, err := pool.HelloAt(testContext(t), "no port here"); err == nil || errors.Is(err, ErrRefused) {
		t.Fatalf("nonsense: %v", err)
	}
}

// The pooled connection is deep in back-off when the node comes back: BootAt does
// not care, and Hurry makes the pool not care either.
func TestFreshDialAndHurryIgnoreBackOff(t *testing.T) {
	key := mustKey(t, testKeyText)
	config := DefaultConfig()
	config.BackoffBase, config.BackoffMax = time.Hour, time.Hour
	config.HelloTimeout = generous
	pool := startPool(t, key, config)
	first := startNode(t, key, "127.0.0.1:0", "1769000000000-00000001")
	client, err := pool.Client(first.addr)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Outrank(testContext(t), &OutrankRequest{}); err != nil {
		t.Fatal(err)
	}
	if err := first.stop(); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "refused call", func() bool { _, err := client.Outrank(testContext(t), &OutrankRequest{}); return err != nil })

	second := startNode(t, key, first.addr, "1769000000001-00000002")
	hello, err := pool.HelloAt(testContext(t), second.addr)
	if err != nil || string(hello.Boot) != second.media.boot {
		t.Fatalf("HelloAt = %v, %v, want boot %q", hello, err, second.media.boot)
	}
	pool.Hurry(second.addr)
	if _, err := client.Outrank(testContext(t), &OutrankRequest{}, grpc.WaitForReady(true)); err != nil {
		t.Fatalf("after Hurry: %v", err)
	}
}

func TestWatchHearsBeatsUntilTheNodeGoes(t *testing.T) {
	key := mustKey(t, testKeyText)
	node := startNode(t, key, "127.0.0.1:0", "1769000000000-00000001")
	pool := startPool(t, key, DefaultConfig())
	beats := 0
	err := pool.Watch(testContext(t), node.addr, "signaling-1", func(hello Hello) error {
		if hello.Node != "sfu-1" || string(hello.Boot) != node.media.boot {
			t.Errorf("heartbeat of %+v", hello)
		}
		if beats++; beats == 2 {
			go func() { _ = node.stop() }()
			return nil
		}
		node.media.heartbeat <- struct{}{}
		return nil
	})
	if err == nil || beats != 2 {
		t.Fatalf("Watch = %v after %d beats, want an error after 2", err, beats)
	}
	refused := errors.New("enough")
	other := startNode(t, key, "127.0.0.1:0", "1769000000000-00000001")
	if err := pool.Watch(testContext(t), other.addr, "signaling-1", func(Hello) error { return refused }); !errors.Is(err, refused) {
		t.Fatalf("Watch = %v, want what heartbeat returned", err)
	}
	if held, err := pool.Outrank(testContext(t), other.addr, "r", testPin, true); err != nil || !held {
		t.Fatalf("Outrank = %v, %v", held, err)
	}
}

func TestPoolSharesForgetsAndIsBounded(t *testing.T) {
	key := mustKey(t, testKeyText)
	node := startNode(t, key, "127.0.0.1:0", "1769000000000-00000001")
	config := DefaultConfig()
	config.MaxConnections = 1
	pool := startPool(t, key, config)
	_, watch := watchOver(t, pool, node)
	if _, err := pool.Client(node.addr); err != nil {
		t.Fatalf("the same address again: %v", err)
	}
	if _, err := pool.Client("127.0.0.1:1"); !errors.Is(err, errPoolFull) {
		t.Fatalf("one address too many: %v, want ErrPoolFull", err)
	}
	pool.Forget(node.addr)
	if _, err := watch.Recv(); err == nil {
		t.Fatal("a call outlived Forget")
	}
	if _, err := pool.Client("127.0.0.1:1"); err != nil {
		t.Fatalf("after Forget: %v", err)
	}
	pool.Close()
	pool.Close()
	if _, err := pool.Client(node.addr); !errors.Is(err, errPoolClosed) {
		t.Fatalf("after Close: %v, want ErrPoolClosed", err)
	}
}

func TestZeroKeyReachesNobody(t *testing.T) {
	node := startNode(t, mustKey(t, testKeyText), "127.0.0.1:0", "1769000000000-00000001")
	if _, err := startPool(t, ClusterKey{}, DefaultConfig()).HelloAt(testContext(t), node.addr); err == nil {
		t.Fatal("the zero key was let in")
	}
	open := startNode(t, ClusterKey{}, "127.0.0.1:0", "1769000000000-00000001")
	ctx, cancel := context.WithTimeout(t.Context(), generous)
	defer cancel()
	if _, err := startPool(t, ClusterKey{}, DefaultConfig()).HelloAt(ctx, open.addr); err == nil {
		t.Fatal("two zero keys trusted each other")
	}
}

func TestDrainCarriesTheOrder(t *testing.T) {
	key := mustKey(t, testKeyText)
	pool := startPool(t, key, DefaultConfig())
	node := startNode(t, key, "127.0.0.1:0", "1769000000000-00000001")
	for _, undrain := range []bool{false, true} {
		reply, err := pool.Drain(testContext(t), node.addr, DrainOrder{Undrain: undrain, Deadline: time.Minute})
		if err != nil || reply.GetDraining() == undrain || reply.GetRooms() != 60_000 {
			t.Errorf("undrain %v: %v, %v", undrain, reply, err)
		}
	}
	if err := node.stop(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := pool.Drain(ctx, node.addr, DrainOrder{}); err == nil {
		t.Error("a node that is gone took the order")
	}
}
