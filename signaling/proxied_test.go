package signaling

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/pires/go-proxyproto"

	"github.com/holdfast-rtc/holdfast/internal/testkit"
	"github.com/holdfast-rtc/holdfast/internal/tool"
	"github.com/holdfast-rtc/holdfast/signaling/limits"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// brought dials through a balancer at address that begins with header.
func (e *signalingNode) brought(address, header string) *client {
	e.rig.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), generous)
	defer cancel()
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		if err == nil {
			_, err = conn.Write([]byte(header))
		}
		return conn, err
	}
	conn, _, err := websocket.Dial(ctx, "ws://"+e.addr+"/ws", &websocket.DialOptions{
		Subprotocols: []string{wire.Subprotocol}, HTTPClient: &http.Client{Transport: &http.Transport{DialContext: dial}},
	})
	if err != nil {
		e.rig.t.Fatal(err)
	}
	conn.SetReadLimit(wire.MaxMessageBytes)
	e.rig.t.Cleanup(func() { _ = conn.CloseNow() })
	return &client{t: e.rig.t, conn: conn}
}

func headerOf(t *testing.T, version byte, ip string) string {
	t.Helper()
	source, own := &net.TCPAddr{IP: net.ParseIP(ip), Port: 4711}, &net.TCPAddr{IP: net.ParseIP("192.0.2.1"), Port: 443}
	if strings.Contains(ip, ":") {
		own.IP = net.ParseIP("2001:db8::1")
	}
	text, err := proxyproto.HeaderProxyFromAddrs(version, source, own).Format()
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The quota of an address counts people behind balancers that pass bytes: one that speaks either version, IPv4 or IPv6, and a real haproxy.
func TestBalancersSayWhomTheyBring(t *testing.T) {
	r := newRig(t)
	n := r.node("sfu-1")
	e := r.signalingNode(func(c *Config) {
		c.Limits.Quotas = limits.Quotas{Address: limits.Quota{Joins: limits.Rate{PerSecond: 0.001, Burst: 2}}}
		c.ProxyProtocolFrom = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	})
	haproxy := startHaproxy(t, e.addr)
	room := 0
	for i, way := range []struct {
		at, header string
		joins      bool
	}{
		{e.addr, headerOf(t, 1, "198.51.100.7"), true},
		{e.addr, headerOf(t, 2, "198.51.100.7"), true},
		{e.addr, headerOf(t, 2, "198.51.100.7"), false},
		{haproxy, headerOf(t, 1, "198.51.100.7"), false},
		{haproxy, headerOf(t, 1, "198.51.100.8"), true},
		{e.addr, headerOf(t, 2, "2001:db8:1::7"), true},
		{e.addr, headerOf(t, 2, "2001:db8:1::8"), true},
		{haproxy, headerOf(t, 1, "2001:db8:1::9"), false}, // of one /64
		{e.addr, "", true}, // the balancer itself, here loopback
	} {
		room++
		name := fmt.Sprint("room-", room)
		r.placer.set(pinRoom(name), n.pin(firstEpoch))
		c := e.brought(way.at, way.header)
		if way.joins {
			c.say(&wire.Join{Token: r.token(name, fmt.Sprint("Ada", i))})
			hear[*wire.Joined](c)
		} else if said := c.refused(r.token(name, fmt.Sprint("Ada", i))); !strings.HasPrefix(said, "Too many joins of this address.") {
			t.Errorf("%d is refused with %q", i, said)
		}
	}
}

// A header of somebody who is no balancer is a request that nobody understands.
func TestStrangersSayNothingOfThemselves(t *testing.T) {
	r := newRig(t)
	for name, trusted := range map[string]string{"": "none", "192.0.2.0/24": "others"} {
		e := r.signalingNode(func(c *Config) {
			if name != "" {
				c.ProxyProtocolFrom = []netip.Prefix{netip.MustParsePrefix(name)}
			}
		})
		if line := askPlainly(t, e.addr, headerOf(t, 1, "198.51.100.7")+"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"); !strings.Contains(line, " 400 ") {
			t.Errorf("with balancers %s a stranger gets %q", trusted, line)
		}
	}
}

// A balancer that says nothing, or half a header, holds nobody else up.
func TestHalfAHeaderHoldsNothingUp(t *testing.T) {
	r := newRig(t)
	e := r.signalingNode(func(c *Config) { c.ProxyProtocolFrom = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")} })
	for _, header := range []string{"", "PROXY TCP4 198.51", headerOf(t, 2, "198.51.100.7")[:15]} {
		conn, err := net.Dial("tcp", e.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := conn.Write([]byte(header)); err != nil {
			t.Fatal(err)
		}
	}
	if line := askPlainly(t, e.addr, headerOf(t, 2, "198.51.100.7")+"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"); !strings.Contains(line, " 200 ") {
		t.Errorf("it answers %q", line)
	}
}

// Connections without a session count for those whom the balancer brings.
func TestWhoIsBroughtIsCountedFromTheHeader(t *testing.T) {
	r := newRig(t)
	e := r.signalingNode(func(c *Config) {
		c.MaxWaitingPerAddress = 2
		c.ProxyProtocolFrom = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	})
	enter := func(ip string) net.Conn {
		t.Helper()
		conn, err := net.Dial("tcp", e.addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		_ = conn.SetDeadline(time.Now().Add(generous / 2)) // less than an idle connection stays
		_, _ = conn.Write([]byte(headerOf(t, 2, ip) + "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"))
		if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || !strings.Contains(line, " 200 ") {
			t.Fatalf("%s is answered %q, %v", ip, line, err)
		}
		return conn
	}
	oldest, ada := enter("198.51.100.7"), enter("198.51.100.8")
	enter("198.51.100.7")
	enter("198.51.100.7")
	if _, err := io.Copy(io.Discard, oldest); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal("three connections of one address stay, want two")
	}
	_, _ = ada.Write([]byte("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"))
	if _, err := bufio.NewReader(ada).ReadString('\n'); err != nil {
		t.Errorf("the connection of another address: %v", err)
	}
}

// startHaproxy passes bytes on to a node, with whom they are of; it believes a header itself.
func startHaproxy(t *testing.T, to string) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	inherited, err := l.(*net.TCPListener).File() // A port given back could be another's by the time haproxy binds it.
	if err != nil {
		t.Fatal(err)
	}
	defer inherited.Close()
	address = l.Addr().String()
	file := filepath.Join(t.TempDir(), "haproxy.cfg")
	config := "defaults\n  mode tcp\n  timeout connect 5s\n  timeout client 1m\n  timeout server 1m\n" +
		"listen signaling\n  bind fd@3 accept-proxy\n  server node " + to + " send-proxy-v2\n"
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.Command(tool.Find(t, "haproxy"), "-db", "-f", file) //nolint:gosec // a listed tool
	command.ExtraFiles = []*os.File{inherited}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	testkit.Within(t, generous, "haproxy listens", func() error {
		conn, err := net.DialTimeout("tcp", address, time.Second)
		if err == nil {
			_ = conn.Close()
		}
		return err
	})
	return address
}
