package livekit

import (
	"io"
	"net"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	lksdk "github.com/livekit/server-sdk-go/v2"
)

// rounds is how often each server is killed: HOLDFAST_KILLS, or once.
func rounds(t *testing.T) int {
	t.Helper()
	text := os.Getenv("HOLDFAST_KILLS")
	if text == "" {
		return 1
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestGaps kills the server of two clients again and again, and logs how long nothing came. With LIVEKIT_SERVER, the path of LiveKit's own
// server, the same clients are with that too.
func TestGaps(t *testing.T) {
	for name, options := range map[string][]lksdk.ConnectOption{"one connection": {lksdk.WithSinglePeerConnection()}, "two connections": nil} {
		t.Run("Holdfast, "+name, func(t *testing.T) {
			c := newCluster(t)
			measure(t, c, options, func(*person) {
				node := c.nodeOf(t, "lobby")
				c.kill(t, node)
				c.startMedia(node)
			})
		})
	}
	server := os.Getenv("LIVEKIT_SERVER")
	if server == "" {
		return
	}
	t.Run("LiveKit, restarted", func(t *testing.T) {
		node := newReference(t, server, "")
		measure(t, &cluster{page: node.page}, nil, func(*person) { node.restart(t) })
	})
	t.Run("LiveKit, two nodes", func(t *testing.T) {
		redis := address(t)
		_, port, _ := net.SplitHostPort(redis)
		start(t, "redis-server", nil, "--port", port, "--bind", "127.0.0.1", "--save", "")
		answers(t, redis)
		nodes := []*reference{newReference(t, server, redis), newReference(t, server, redis)}
		page, _ := balance(t, nodes[0].page, nodes[1].page)
		measure(t, &cluster{page: page}, nil, func(p *person) {
			for _, n := range nodes {
				if n.id(t) == p.room.ServerInfo().GetNodeId() {
					n.restart(t)
					return
				}
			}
			t.Fatal("no node has the room")
		})
	})
}

// reference is a node of LiveKit's own server.
type reference struct {
	server, page, media, tcp, redis string
	log                             string // the path
	process                         *exec.Cmd
}

func newReference(t *testing.T, server, redis string) *reference {
	t.Helper()
	r := &reference{server: server, page: address(t), media: address(t), tcp: address(t), redis: redis}
	r.start(t)
	return r
}

func (r *reference) restart(t *testing.T) {
	t.Helper()
	_ = r.process.Process.Kill()
	_ = r.process.Wait()
	r.start(t)
}

func (r *reference) start(t *testing.T) {
	t.Helper()
	port := func(address string) string {
		_, port, _ := net.SplitHostPort(address)
		return port
	}
	config := "port: " + port(r.page) + "\nbind_addresses: [127.0.0.1]\nkeys: {" + key + ": " + secret + "}\nlogging: {level: info, json: true}\n" +
		"rtc: {udp_port: " + port(r.media) + ", tcp_port: " + port(r.tcp) + ", node_ip: 127.0.0.1, enable_loopback_candidate: true, use_external_ip: false}\n"
	if r.redis != "" {
		config += "redis: {address: '" + r.redis + "'}\n"
	}
	log, err := os.CreateTemp(t.TempDir(), "livekit")
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	r.log = log.Name()
	r.process = exec.Command(r.server, "--config-body", config)
	r.process.Stderr = log
	if err := r.process.Start(); err != nil {
		t.Fatal(err)
	}
	process := r.process
	t.Cleanup(func() {
		_ = process.Process.Kill()
		_ = process.Wait()
	})
	answers(t, r.page)
}

func answers(t *testing.T, address string) {
	t.Helper()
	until(t, address+" answers", func() bool {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
}

// id is the name by which the node tells clients of itself.
func (r *reference) id(t *testing.T) string {
	t.Helper()
	said, err := os.ReadFile(r.log)
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`"nodeID":"(ND_\w+)"`).FindSubmatch(said)
	if found == nil {
		return ""
	}
	return string(found[1])
}

// balance forwards connections to the first address that answers. cut ends those that there are.
func balance(t *testing.T, to ...string) (at string, cut func()) {
	t.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lis.Close() })
	var mu sync.Mutex
	var open []net.Conn
	go func() {
		for {
			from, err := lis.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open = append(open, from)
			mu.Unlock()
			go func() {
				defer from.Close()
				for _, address := range to {
					onward, err := net.Dial("tcp", address)
					if err != nil {
						continue
					}
					defer onward.Close()
					go func() {
						_, _ = io.Copy(onward, from)
						_ = onward.Close()
					}()
					_, _ = io.Copy(from, onward)
					return
				}
			}()
		}
	}()
	return lis.Addr().String(), func() {
		mu.Lock()
		defer mu.Unlock()
		for _, conn := range open {
			_ = conn.Close()
		}
		open = nil
	}
}

// measure logs the longest time between two packets of each stream, over all kills.
func measure(t *testing.T, c *cluster, options []lksdk.ConnectOption, kill func(*person)) {
	ann, bob := connect(t, c, "lobby", "ann", options...), connect(t, c, "lobby", "bob", options...)
	ann.speak(t)
	ann.show(t)
	bob.speak(t)
	bob.show(t)
	streams := map[string]*person{"ann audio": bob, "ann video": bob, "bob audio": ann, "bob video": ann}
	var gaps []time.Duration
	for range rounds(t) {
		for of, p := range streams {
			flows(t, p, of)
			flows(t, p, of)
		}
		before := map[string]int{}
		for of, p := range streams {
			before[of] = p.got(of)
			p.forget(of)
		}
		kill(ann)
		for of, p := range streams {
			until(t, of+" after the kill", func() bool { return p.got(of) > before[of]+50 })
			gaps = append(gaps, p.longestOf(of))
		}
	}
	slices.Sort(gaps)
	at := func(part float64) time.Duration {
		return gaps[min(int(part*float64(len(gaps))), len(gaps)-1)].Round(time.Millisecond)
	}
	load, _ := os.ReadFile("/proc/loadavg")
	t.Logf("%d gaps: p50 %v, p95 %v, longest %v; load %s", len(gaps), at(0.5), at(0.95), at(1), strings.TrimSpace(string(load)))
}
