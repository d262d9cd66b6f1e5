package livekit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/livekit/protocol/auth"
)

const (
	generous = 60 * time.Second
	key      = "app"
)

var secret = strings.Repeat("s", 32)

// cluster is a signaling node and two media nodes, each a process of the unmodified binary.
type cluster struct {
	page  string // of the signaling node
	media map[string]*exec.Cmd
	// startMedia starts the media node of a name.
	startMedia func(name string)
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	binary, store, gossip := build(t), address(t), address(t)
	c := &cluster{page: address(t), media: map[string]*exec.Cmd{}}
	env := []string{
		"HOLDFAST_CLUSTER_KEY=" + strings.Repeat("k", 32), "HOLDFAST_API_KEYS=" + key + ":" + secret, "HOLDFAST_STORE=redis://" + store, "HOLDFAST_JOIN=" + gossip,
	}
	start(t, binary, nil, "store", "--listen", store)
	start(t, binary, env, "signaling", "--name", "signaling-0", "--listen", c.page, "--control-listen", "127.0.0.1:0", "--gossip-listen", gossip, "--solo")
	until(t, "the signaling node answers", func() bool {
		conn, err := net.Dial("tcp", c.page)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
	c.startMedia = func(name string) {
		c.media[name] = start(t, binary, env, "sfu", "--name", name, "--grace", "10s", "--control-listen", "127.0.0.1:0", "--media-listen", "127.0.0.1:0", "--gossip-listen", "127.0.0.1:0")
	}
	for _, name := range []string{"sfu-0", "sfu-1"} {
		c.startMedia(name)
	}
	until(t, "both media nodes are known", func() bool {
		said := c.ask(t, http.MethodGet, "/api/v1/nodes")
		return strings.Contains(said, "sfu-0") && strings.Contains(said, "sfu-1")
	})
	return c
}

// ask returns the answer of the HTTP API to an operator.
func (c *cluster) ask(t *testing.T, method, path string) string {
	t.Helper()
	token, err := auth.NewAccessToken(key, secret).SetIdentity("operator").SetVideoGrant(&auth.VideoGrant{RoomList: true, RoomAdmin: true}).ToJWT()
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), method, "http://"+c.page+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err.Error()
	}
	defer answer.Body.Close()
	var said bytes.Buffer
	_, _ = said.ReadFrom(answer.Body)
	return said.String()
}

// nodeOf returns the media node of a room.
func (c *cluster) nodeOf(t *testing.T, room string) (node string) {
	t.Helper()
	until(t, "the room has a node", func() bool {
		var said struct {
			HeldBy []struct{ Node string }
		}
		if json.Unmarshal([]byte(c.ask(t, http.MethodGet, "/api/v1/rooms/"+room)), &said) == nil && len(said.HeldBy) == 1 {
			node = said.HeldBy[0].Node
		}
		return node != ""
	})
	return node
}

func (c *cluster) kill(t *testing.T, node string) {
	t.Helper()
	if err := c.media[node].Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = c.media[node].Wait()
}

func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(generous); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within %v", what, generous)
		}
	}
}

var built = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "livekit")
	if err != nil {
		return "", err
	}
	binary := filepath.Join(dir, "holdfast")
	cmd := exec.Command("go", "build", "-o", binary, ".")
	cmd.Dir = filepath.Join("..", "..")
	if said, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, said)
	}
	return binary, nil
})

func build(t *testing.T) string {
	t.Helper()
	binary, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return binary
}

func TestMain(m *testing.M) {
	code := m.Run()
	if binary, err := built(); err == nil {
		_ = os.RemoveAll(filepath.Dir(binary))
	}
	os.Exit(code)
}

func start(t *testing.T, binary string, env []string, args ...string) *exec.Cmd {
	t.Helper()
	var said bytes.Buffer
	cmd := exec.Command(binary, args...)
	cmd.Env, cmd.Stderr = append(os.Environ(), env...), &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("%v:\n%s", args, said.String())
		}
	})
	return cmd
}

// address returns a free one, outside the range from which the kernel gives ports to sockets that ask for none in particular.
func address(t *testing.T) string {
	t.Helper()
	for range 200 {
		at := net.JoinHostPort("127.0.0.1", strconv.Itoa(20_000+rand.IntN(12_000)))
		tcp, err := net.Listen("tcp", at)
		if err != nil {
			continue
		}
		udp, err := net.ListenPacket("udp", at)
		_ = tcp.Close()
		if err == nil {
			_ = udp.Close()
			return at
		}
	}
	t.Fatal("no port is free")
	return ""
}
