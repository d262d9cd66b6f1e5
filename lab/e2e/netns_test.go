//go:build linux

package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/holdfast-rtc/holdfast/balancer"
)

// netns is a network namespace, joined to this machine by virtual interfaces: a browser in it has an address that is not
// loopback. It is unnamed and lives in one thread, so that the kernel removes it with the test process.
type netns struct {
	network string // three of the four numbers of its addresses, with the dot
	host    string // the address of this machine's end
	device  string // the interface of this machine's end
	tasks   chan func()
	ended   chan struct{}
}

// netnsPrefix leaves a few addresses to move to.
const netnsPrefix = "/29"

func mayMakeNetns() error {
	result := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with its namespace
		result <- unix.Unshare(unix.CLONE_NEWNET)
	}()
	return <-result
}

// newNetns makes the namespace; it ends with the test. It needs root.
func newNetns(t *testing.T) *netns {
	t.Helper()
	// Interfaces of an earlier namespace may still be going away.
	n := &netns{device: fmt.Sprintf("hf%08x", rand.Uint32()), tasks: make(chan func()), ended: make(chan struct{})}
	entered := make(chan error, 1)
	go n.live(entered)
	if err := <-entered; err != nil {
		t.Fatalf("make a network namespace: %v", err)
	}
	t.Cleanup(func() {
		_ = ip("link", "del", n.device) // The kernel would, a moment after the namespace's end.
		close(n.tasks)
		<-n.ended
	})
	if err := n.join(); err != nil {
		t.Fatalf("join the network namespace to this machine: %v", err)
	}
	return n
}

// live is the namespace's thread. It is never unlocked, so that it serves no other goroutine.
func (n *netns) live(entered chan<- error) {
	defer close(n.ended)
	runtime.LockOSThread()
	err := unix.Unshare(unix.CLONE_NEWNET)
	entered <- err
	if err != nil {
		return
	}
	for task := range n.tasks {
		task()
	}
}

// do runs f on the namespace's thread: its sockets and processes are inside, and a process can be tied to the thread's
// life.
func (n *netns) do(f func() error) error {
	result := make(chan error, 1)
	n.tasks <- func() { result <- f() }
	return <-result
}

// join makes the pair of interfaces, on a network that this machine does not have.
func (n *netns) join() error {
	n.network = fmt.Sprintf("10.%d.%d.", 200+rand.IntN(50), rand.IntN(256))
	n.host = n.network + "1"
	if taken, err := overlaps(n.network + "0" + netnsPrefix); err != nil || taken {
		return errors.Join(err, fmt.Errorf("%s0%s is in use: %t", n.network, netnsPrefix, taken))
	}
	var thread int
	return inOrder(
		func() error { return n.do(func() error { thread = unix.Gettid(); return nil }) },
		func() error {
			space := fmt.Sprintf("/proc/%d/task/%d/ns/net", os.Getpid(), thread)
			return ip("link", "add", n.device, "type", "veth", "peer", "name", "outside", "netns", space)
		},
		func() error { return ip("addr", "add", n.host+netnsPrefix, "dev", n.device) },
		func() error { return ip("link", "set", n.device, "up") },
		func() error { return n.ip("link", "set", "lo", "up") },
		func() error { return n.ip("link", "set", "outside", "up") },
		func() error { return n.address(2) },
	)
}

// address replaces the inside's address, as when somebody walks into another network.
func (n *netns) address(number int) error {
	return inOrder(
		func() error { return n.ip("addr", "flush", "dev", "outside", "scope", "global") },
		func() error { return n.ip("addr", "add", fmt.Sprint(n.network, number, netnsPrefix), "dev", "outside") },
		// Browsers take the address of the default route for their own.
		func() error { return n.ip("route", "replace", "default", "via", n.host) },
	)
}

func (n *netns) ip(args ...string) error { return n.do(func() error { return ip(args...) }) }

func inOrder(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func ip(args ...string) error {
	if out, err := exec.CommandContext(context.Background(), "ip", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("ip %v: %w: %s", args, err, out)
	}
	return nil
}

// overlaps reports whether this machine has an address in a network.
func overlaps(network string) (bool, error) {
	_, wanted, err := net.ParseCIDR(network)
	if err != nil {
		return false, err
	}
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return false, err
	}
	for _, address := range addresses {
		if own, ok := address.(*net.IPNet); ok && (wanted.Contains(own.IP) || own.Contains(wanted.IP)) {
			return true, nil
		}
	}
	return false, nil
}

func (n *netns) dial(ctx context.Context, network, address string) (net.Conn, error) {
	var conn net.Conn
	err := n.do(func() (err error) {
		// With an address, not a name, the dialer works on this very thread.
		conn, err = (&net.Dialer{}).DialContext(ctx, network, address)
		return err
	})
	return conn, err
}

// forward passes connections to a loopback port inside on to an address of this machine. A page from loopback may use
// the camera.
func (n *netns) forward(t *testing.T, to string) string {
	t.Helper()
	var listener net.Listener
	err := n.do(func() (err error) {
		listener, err = (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
		return err
	})
	if err != nil {
		t.Fatalf("listen in the network namespace: %v", err)
	}
	cfg := balancer.DefaultConfig()
	cfg.Backends, cfg.CheckEvery = []string{to}, 0
	var passing sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(func() { cancel(); passing.Wait() })
	passing.Go(func() { _ = balancer.New(cfg, quiet()).Serve(ctx, listener) }) // It ends with ctx.
	return listener.Addr().String()
}
