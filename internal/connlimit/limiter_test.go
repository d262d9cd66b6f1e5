package connlimit

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func from(t *testing.T, address string) net.Addr {
	t.Helper()
	resolved, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	return resolved
}

func TestTheOldestIsDropped(t *testing.T) {
	l := New(Limits{Total: 4, PerAddress: 2})
	var gone []string
	enter := func(name, address string) *Pending {
		return l.Add(from(t, address), func() { gone = append(gone, name) })
	}
	enter("a1", "192.0.2.1:1")
	a2 := enter("a2", "192.0.2.1:2")
	enter("b1", "192.0.2.2:1")
	enter("a3", "[::ffff:192.0.2.1]:3") // the same address in another form
	if !slices.Equal(gone, []string{"a1"}) {
		t.Fatalf("%v were dropped, want the oldest of the crowded address", gone)
	}
	a2.Done()
	a2.Done()
	enter("c1", "[2001:db8::1]:1")
	enter("c2", "[2001:db8::2]:1")
	if len(gone) != 1 {
		t.Fatalf("%v were dropped although there was room", gone)
	}
	enter("c3", "[2001:db8::ffff:ffff:ffff:ffff]:1")
	if !slices.Equal(gone, []string{"a1", "c1"}) {
		t.Fatalf("%v: one network of 64 bits is one address", gone)
	}
	enter("d1", "192.0.2.4:1")
	if now, dropped := l.Count(); !slices.Equal(gone, []string{"a1", "c1", "b1"}) || now != 4 || dropped != 3 {
		t.Fatalf("%d wait, %d were dropped: %v", now, dropped, gone)
	}
}

func TestDropBy(t *testing.T) {
	l := New(Limits{Total: 1, PerAddress: 1})
	var how []string
	g := l.Add(from(t, "192.0.2.1:1"), func() { how = append(how, "hard") })
	g.DropBy(func() { how = append(how, "soft") })
	l.Add(from(t, "192.0.2.2:1"), func() {})
	g.Done()
	if !slices.Equal(how, []string{"soft"}) {
		t.Fatalf("dropped %v", how)
	}
	if len(l.addresses) != 1 {
		t.Fatalf("%d addresses are remembered, want that of the one connection", len(l.addresses))
	}
}

// TestAProxysConnectionsCountForWhomItBringsThem: the proxy itself has no limit, the people behind it have theirs.
func TestAProxysConnectionsCountForWhomItBringsThem(t *testing.T) {
	proxies := []netip.Prefix{netip.MustParsePrefix("192.0.2.1/32"), netip.MustParsePrefix("2001:db8::1/128")}
	l := New(Limits{Total: 100, PerAddress: 2, Proxies: proxies})
	var gone []string
	enter := func(name, address string) *Pending {
		return l.Add(from(t, address), func() { gone = append(gone, name) })
	}
	for i := range 5 {
		enter("unsaid", "192.0.2.1:"+strconv.Itoa(i+1))
		enter("unsaid", "[2001:db8::1]:"+strconv.Itoa(i+1))
	}
	if len(gone) != 0 {
		t.Fatalf("%v were dropped, want nobody: it is not known who they are", gone)
	}
	eve, ada := Network(netip.MustParseAddr("198.51.100.1")), Network(netip.MustParseAddr("198.51.100.2"))
	for i := range 4 {
		enter(fmt.Sprint("eve-", i), "192.0.2.1:9").CountFor(eve)
	}
	g := enter("ada", "192.0.2.1:9")
	g.CountFor(ada)
	if !slices.Equal(gone, []string{"eve-0", "eve-1"}) {
		t.Fatalf("%v were dropped, want eve's oldest", gone)
	}
	g.Done()
	g.CountFor(eve)
	if now, _ := l.Count(); now != 12 || len(l.addresses) != 3 {
		t.Fatalf("%d wait, of %d addresses", now, len(l.addresses))
	}
}

func takesTwo(c *KeyedCounter, key string) bool {
	first := c.Take(key)
	return c.Take(key) && first
}

func passesTwice(s *KeyedLimiter, key string) bool {
	first := s.Allow(key)
	return s.Allow(key) && first
}

func TestKeyedCounter(t *testing.T) {
	c := NewKeyedCounter(2)
	if !takesTwo(c, "ada") || c.Take("ada") || !c.Take("bob") {
		t.Fatal("the count is wrong")
	}
	c.Give("ada")
	if !c.Take("ada") || c.Take("ada") {
		t.Fatal("what was given back is not there")
	}
	c.Give("bob")
	if len(c.held) != 1 {
		t.Fatalf("%d keys are remembered, want one", len(c.held))
	}
	if all := NewKeyedCounter(0); !takesTwo(all, "x") {
		t.Fatal("0 is a limit")
	}
}

func TestConnectionsArePendingUntilDoneOrClosed(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := New(Limits{Total: 2, PerAddress: 2})
	listener := Listen(inner, l)
	defer listener.Close()
	var clients []net.Conn
	accept := func() *Conn {
		client, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { client.Close() })
		clients = append(clients, client)
		conn, err := listener.Accept()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		return conn.(*Conn)
	}
	admitted, closed := accept(), accept()
	admitted.Done()
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	if now, _ := l.Count(); now != 0 {
		t.Fatalf("%d wait, want none", now)
	}
	for range 3 {
		accept()
	}
	if _, err := clients[2].Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Fatalf("the one that waited longest reads %v, want the end", err)
	}
	if _, err := admitted.Write([]byte("x")); err != nil {
		t.Fatalf("the one that was admitted: %v", err)
	}
	if now, dropped := l.Count(); now != 2 || dropped != 1 {
		t.Fatalf("%d wait, %d were dropped", now, dropped)
	}
}

func TestKeyedLimiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewKeyedLimiter(2, 3, 10)
		passed := func(key string, tries int) (n int) {
			for range tries {
				if s.Allow(key) {
					n++
				}
			}
			return n
		}
		if a, b := passed("ada", 100), passed("bob", 2); a != 3 || b != 2 {
			t.Fatalf("%d and %d passed at once, want 3 and 2", a, b)
		}
		<-time.After(time.Second)
		if n := passed("ada", 100); n != 2 {
			t.Fatalf("%d passed a second later, want 2", n)
		}
		for i := range 100 {
			passed(strconv.Itoa(i), 1)
		}
		if len(s.keys) != 10 {
			t.Fatalf("%d keys are remembered, want 10", len(s.keys))
		}
		<-time.After(time.Minute)
		passed("carol", 1)
		if len(s.keys) != 1 {
			t.Fatalf("%d keys are remembered after a rest, want one", len(s.keys))
		}
	})
}

func TestReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewKeyedLimiter(0.001, 2, 10)
		if !passesTwice(s, "ada") || s.Allow("ada") {
			t.Fatal("two do not pass, or a third does")
		}
		s.Return("ada")
		s.Return("nobody")
		if !s.Allow("ada") || s.Allow("ada") {
			t.Fatal("one was returned")
		}
		for range 5 {
			s.Return("bob")
			s.Return("ada")
		}
		if !passesTwice(s, "ada") || s.Allow("ada") {
			t.Fatal("there is never more than the burst")
		}
	})
}
