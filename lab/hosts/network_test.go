//go:build linux

package hosts

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/tool"
)

const aName = "a.example.test"

// TestTheNetwork runs insideTheNetwork in a process that is alone, and looks whether
// anything of it can be seen out here.
func TestTheNetwork(t *testing.T) {
	if Alone() {
		insideTheNetwork(t)
		return
	}
	if _, err := Make([]string{"a"}); !errors.Is(err, ErrNotAlone) {
		t.Errorf("made a network out here: %v", err)
	}
	if err := Name(filepath.Join(t.TempDir(), "hosts"), nil); !errors.Is(err, ErrNotAlone) {
		t.Errorf("gave names out here: %v", err)
	}
	tool.Find(t, "ip")
	tool.Find(t, "nft")
	if err := Able(); err != nil {
		if os.Getenv("CI") == "true" || os.Getuid() == 0 {
			t.Fatal(err)
		}
		t.Skipf("NOT tested: cables that are cut, lossy and slow. %v; run the tests as root", err)
	}
	before := interfaces(t)
	if err := RunAlone(t.Context(), os.Args[0], "-test.run=^TestTheNetwork$", "-test.v="+fmt.Sprint(testing.Verbose())); err != nil {
		t.Fatal(err)
	}
	if names, err := os.ReadFile("/etc/hosts"); err != nil || bytes.Contains(names, []byte(aName)) {
		t.Errorf("the names out here: %v\n%s", err, names)
	}
	ours := regexp.MustCompile(`^(switch|eth0|port\d+|hf[nf][0-9a-f]{8})$`) // Others use the machine, too.
	for _, name := range interfaces(t) {
		if !slices.Contains(before, name) && ours.MatchString(name) {
			t.Errorf("interface %s is left; before there were %s", name, before)
		}
	}
	var ended *EndedError
	if err := RunAlone(t.Context(), "sh", "-c", "exit 7"); !errors.As(err, &ended) || ended.Code != 7 {
		t.Errorf("a program that ended with 7: %v", err)
	}
}

func interfaces(t *testing.T) (names []string) {
	t.Helper()
	all, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range all {
		names = append(names, one.Name)
	}
	return names
}

func insideTheNetwork(t *testing.T) {
	n, err := Make([]string{"a", "b"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	}()
	if seen := interfaces(t); !slices.Equal(seen, []string{"lo", "eth0"}) {
		t.Errorf("the interfaces here are %s", seen)
	}
	if err := Name(filepath.Join(t.TempDir(), "hosts"), map[string]string{aName: "10.77.0.99"}); err != nil {
		t.Fatal(err)
	}
	if found, err := net.DefaultResolver.LookupHost(t.Context(), aName); err != nil || fmt.Sprint(slices.Compact(found)) != "[10.77.0.99]" {
		t.Errorf("%s is %v: %v", aName, found, err)
	}
	within, cancel := context.WithTimeout(t.Context(), 4*time.Second) // A resolver waits for five.
	defer cancel()
	if found, err := net.DefaultResolver.LookupHost(within, "nobody."+aName); err == nil || within.Err() != nil {
		t.Errorf("a name of nobody is %v: %v", found, err)
	}
	echo := newEcho(t, n, "a")
	defer echo.Close()
	us, b := caller(t, n, "", echo), caller(t, n, "b", echo)
	defer us.Close()
	defer b.Close()

	reaches := func(what string, conn net.Conn, want bool) {
		t.Helper()
		if _, ok := ask(t, conn, 20, 100*time.Millisecond); (ok > 0) != want {
			t.Errorf("%s: %d of 20 came back", what, ok)
		}
	}
	reaches("whole, from here", us, true)
	reaches("whole, from b", b, true)

	hurt(t, n, Fault{}, func() {
		reaches("cut, from here", us, false)
		reaches("cut, from b", b, false)
		if err := n.Hurt("a", Fault{}); !errors.Is(err, ErrHurt) {
			t.Errorf("cut twice: %v", err)
		}
	})
	hurt(t, n, Fault{From: []string{"b"}}, func() {
		reaches("cut from b, from here", us, true)
		reaches("cut from b, from b", b, false)
	})
	tcp := listen(t, n, "a")
	defer tcp.Close()
	connects := func(what string, from func(func() error) error, want bool) {
		t.Helper()
		err := from(func() error {
			conn, err := net.DialTimeout("tcp4", tcp.Addr().String(), time.Second)
			if err == nil {
				conn.Close()
			}
			return err
		})
		if (err == nil) != want {
			t.Errorf("%s: %v", what, err)
		}
	}
	here := func(f func() error) error { return f() }
	hurt(t, n, Fault{From: []string{"b"}, UDP: true}, func() {
		reaches("no UDP with b, from here", us, true)
		reaches("no UDP with b, from b", b, false)
		connects("no UDP with b, TCP from b", n.hosts["b"].space.do, true)
	})
	port := uint16(tcp.Addr().(*net.TCPAddr).Port) //nolint:forcetypeassert,gosec // it listens on TCP
	hurt(t, n, Fault{From: []string{"b"}, Port: port}, func() {
		reaches("no port for b, UDP from b", b, true)
		connects("no port for b, from b", n.hosts["b"].space.do, false)
		connects("no port for b, from here", here, true)
	})
	hurt(t, n, Fault{Percent: 40}, func() {
		if _, ok := ask(t, us, 100, 50*time.Millisecond); ok < 10 || ok > 65 {
			t.Errorf("40 of 100 lost, both ways: %d of 100 came back, want about 36", ok)
		}
	})
	const delay = 80 * time.Millisecond
	hurt(t, n, Fault{Delay: delay}, func() {
		// Each is sent once: a busy machine may lose one.
		if least, ok := ask(t, us, 5, 5*time.Second); ok < 3 || least < 2*delay {
			t.Errorf("delayed by %s both ways: %d of 5 came back, the fastest after %s", delay, ok, least)
		}
		stream(t, n)
	})
	reaches("mended, from here", us, true)
	reaches("mended, from b", b, true)
	if err := n.Hurt("c", Fault{}); !errors.Is(err, ErrNoSuchHost) {
		t.Errorf("cut nobody: %v", err)
	}
}

// hurt does something to a's cable, looks, and mends it.
func hurt(t *testing.T, n *Network, how Fault, look func()) {
	t.Helper()
	if err := n.Hurt("a", how); err != nil {
		t.Fatal(err)
	}
	look()
	if frames, err := n.Mend("a"); err != nil || frames == 0 {
		t.Errorf("mended: %d frames, %v", frames, err)
	}
}

// on opens something on a host, or here.
func on[T any](t *testing.T, n *Network, name string, open func() (T, error)) T {
	t.Helper()
	inside := func(f func() error) error { return f() }
	if name != "" {
		inside = n.hosts[name].space.do
	}
	var opened T
	if err := inside(func() (err error) { opened, err = open(); return err }); err != nil {
		t.Fatal(err)
	}
	return opened
}

// newEcho answers on a host.
func newEcho(t *testing.T, n *Network, name string) net.PacketConn {
	t.Helper()
	conn := on(t, n, name, func() (net.PacketConn, error) {
		return (&net.ListenConfig{}).ListenPacket(t.Context(), "udp4", n.hosts[name].IP+":0")
	})
	go func() {
		buffer := make([]byte, 1500)
		for {
			count, from, err := conn.ReadFrom(buffer)
			if err != nil {
				return
			}
			_, _ = conn.WriteTo(buffer[:count], from) // what is lost is asked for again
		}
	}()
	return conn
}

func caller(t *testing.T, n *Network, name string, echo net.PacketConn) net.Conn {
	t.Helper()
	return on(t, n, name, func() (net.Conn, error) {
		return (&net.Dialer{}).DialContext(t.Context(), "udp4", echo.LocalAddr().String())
	})
}

func listen(t *testing.T, n *Network, name string) net.Listener {
	t.Helper()
	return on(t, n, name, func() (net.Listener, error) {
		return (&net.ListenConfig{}).Listen(t.Context(), "tcp4", n.hosts[name].IP+":0")
	})
}

// ask sends so many datagrams, one after the other, and counts the answers in time. To send is never an
// error, however hurt the cable is.
func ask(t *testing.T, conn net.Conn, times int, patience time.Duration) (least time.Duration, answered int) {
	t.Helper()
	least = time.Hour
	for range times {
		token := fmt.Sprint(rand.Uint64())
		began := time.Now()
		if _, err := conn.Write([]byte(token)); err != nil {
			t.Errorf("send: %v", err)
		}
		_ = conn.SetReadDeadline(began.Add(patience))
		buffer := make([]byte, 64)
		for {
			count, err := conn.Read(buffer)
			if err != nil {
				break
			}
			if string(buffer[:count]) == token {
				answered++
				least = min(least, time.Since(began))
				break
			}
		}
	}
	return least, answered
}

// stream sends megabytes through the relay by TCP: in large frames whose checksums nobody has filled in.
func stream(t *testing.T, n *Network) {
	t.Helper()
	listener := listen(t, n, "a")
	defer listener.Close()
	content := make([]byte, 2<<20)
	for i := range content {
		content[i] = byte(rand.Uint32())
	}
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		_, _ = conn.Write(content) // whoever reads sees what is missing
		conn.Close()
	}()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp4", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetReadDeadline(time.Now().Add(30 * time.Second))
	if got, err := io.ReadAll(conn); err != nil || !bytes.Equal(got, content) {
		t.Errorf("%d bytes came, want %d: %v", len(got), len(content), err)
	}
}
