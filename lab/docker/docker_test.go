package docker

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
	"github.com/holdfast-rtc/holdfast/lab/hosts"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeEngine has one container of each role, and hears orders.
type fakeEngine struct {
	// keys is the host's directory of API keys.
	keys string

	mu     sync.Mutex // guards the fields below
	states map[string]string
	ips    map[string]string // by service; none: cut off
	heard  []string
}

func (f *fakeEngine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	path := strings.TrimPrefix(r.URL.Path, "/v1.40")
	var body disconnected
	_ = json.NewDecoder(r.Body).Decode(&body)
	id, what, _ := strings.Cut(strings.TrimPrefix(path, "/containers/"), "/")
	switch {
	case path == "/containers/json":
		_ = json.NewEncoder(w).Encode(f.list())
	case what == "json":
		_, _ = fmt.Fprintf(w, `{"Config":{"Env":["A=b","HOLDFAST_API_KEYS_FILE=/keys/api/keys"]},"State":{"Health":{"Status":"healthy"}},
			"Mounts":[{"Source":"/nowhere","Destination":"/data"},{"Source":%q,"Destination":"/keys/api"}]}`, f.keys)
	case id == "sfu-2":
		http.Error(w, `{"message":"no"}`, http.StatusConflict)
	default:
		f.heard = append(f.heard, strings.TrimSpace(path+" "+r.URL.RawQuery+body.Container))
		states := map[string]string{"kill": "exited", "pause": "paused", "unpause": "running", "start": "running"}
		switch {
		case r.URL.Query().Get("signal") == "15":
		case states[what] != "":
			f.states[id] = states[what]
		case strings.HasSuffix(path, "/disconnect"):
			delete(f.ips, body.Container)
		case strings.HasSuffix(path, "/connect") && slices.Equal(body.EndpointConfig.Aliases, []string{"sfu-1"}):
			f.ips[body.Container] = f.ips["next"]
		}
	}
}

func (f *fakeEngine) list() (list []map[string]any) {
	for _, service := range []string{"sfu-1", "sfu-2", "signaling-1", "redis", "front"} {
		networks := map[string]any{}
		if ip := f.ips[service]; ip != "" {
			networks["p_holdfast"] = map[string]string{"IPAddress": ip}
		}
		one := map[string]any{
			"Id": service, "State": f.states[service], "Labels": map[string]string{labelService: service},
			"NetworkSettings": map[string]any{"Networks": networks},
		}
		if service == "front" {
			one["Ports"] = []map[string]any{{"PrivatePort": 7880}, {"IP": "0.0.0.0", "PrivatePort": 7880, "PublicPort": 80}}
		}
		list = append(list, one)
	}
	return list
}

func found(t *testing.T) (*fakeEngine, *Cluster) {
	t.Helper()
	fake := &fakeEngine{
		states: map[string]string{"sfu-1": "running", "sfu-2": "exited", "signaling-1": "running", "redis": "running", "front": "running"},
		ips:    map[string]string{"sfu-1": "10.0.0.3", "redis": "10.0.0.2"},
		keys:   t.TempDir(),
	}
	if err := os.WriteFile(filepath.Join(fake.keys, "keys"), []byte("app:secret\nother:x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(t.TempDir(), "engine")
	lis, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &httptest.Server{Listener: lis, Config: &http.Server{Handler: fake}} //nolint:gosec // of a test
	server.Start()
	t.Cleanup(server.Close)
	t.Setenv("DOCKER_HOST", "unix://"+socket)
	c, err := Find(t.Context(), "p")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return fake, c
}

func TestAClusterOfContainers(t *testing.T) {
	fake, c := found(t)
	client := c.Client()
	if client.Supervised() || client.Access() != (devcluster.Access{Key: "app", Secret: "secret"}) {
		t.Errorf("supervised %t, access %+v", client.Supervised(), client.Access())
	}
	status, err := client.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if status.Page != "http://127.0.0.1:80/" || len(status.Nodes) != 5 {
		t.Errorf("status %+v", status)
	}
	state := func(name string) devcluster.State {
		t.Helper()
		status, err := client.Status(t.Context())
		i := slices.IndexFunc(status.Nodes, func(n devcluster.Node) bool { return n.Name == name })
		if err != nil || i < 0 {
			t.Fatalf("%v, %+v", err, status)
		}
		return status.Nodes[i].State
	}
	if state("sfu-2") != devcluster.StateDead {
		t.Error("a container that has ended is not dead")
	}
	for _, step := range []struct {
		do   func() error
		then devcluster.State
	}{
		{func() error { return client.Kill(t.Context(), "sfu-1", syscall.SIGSTOP) }, devcluster.StateRunning},
		{func() error { return client.Kill(t.Context(), "sfu-1", syscall.SIGCONT) }, devcluster.StateRunning},
		{func() error { return client.Kill(t.Context(), "sfu-1", syscall.SIGTERM) }, devcluster.StateRunning},
		{func() error { return client.Kill(t.Context(), "sfu-1", syscall.SIGKILL) }, devcluster.StateDead},
		{func() error { _, err := client.StartNode(t.Context(), "sfu-1"); return err }, devcluster.StateRunning},
	} {
		if err := step.do(); err != nil || state("sfu-1") != step.then {
			t.Errorf("%v, it is %s, want %s", err, state("sfu-1"), step.then)
		}
	}
	want := []string{"pause", "unpause", "kill signal=15", "kill signal=KILL", "start"}
	for i := range want {
		want[i] = "/containers/sfu-1/" + want[i]
	}
	if !slices.Equal(fake.heard, want) {
		t.Errorf("the engine heard %q, want %q", fake.heard, want)
	}
	if _, err := client.StartNode(t.Context(), "sfu-1", "A=b"); !errors.Is(err, errVariables) {
		t.Errorf("with variables: %v", err)
	}
	if err := client.Kill(t.Context(), "sfu-2", syscall.SIGSTOP); err == nil || !strings.Contains(err.Error(), "409 Conflict: no") {
		t.Errorf("refused: %v", err)
	}
	if err := client.Kill(t.Context(), "sfu-9", syscall.SIGKILL); !errors.Is(err, devcluster.ErrNoSuchNode) {
		t.Errorf("nobody: %v", err)
	}
}

func TestAContainerIsCutOff(t *testing.T) {
	fake, c := found(t)
	n := Network{c}
	fake.ips["next"] = "10.0.0.3"
	if err := n.Hurt("sfu-1", hosts.Fault{Percent: 5}); !errors.Is(err, errOnlyCuts) {
		t.Errorf("loss: %v", err)
	}
	if _, err := n.Mend("sfu-1"); err == nil {
		t.Error("mended what was whole")
	}
	for _, back := range []string{"10.0.0.3", "10.0.0.9"} {
		fake.ips["next"] = back
		if err := n.Hurt("sfu-1", hosts.Fault{}); err != nil {
			t.Fatal(err)
		}
		hurt, err := n.Mend("sfu-1")
		if hurt != 1 || (err == nil) != (back == "10.0.0.3") {
			t.Errorf("back at %s: %d, %v", back, hurt, err)
		}
	}
}

func TestWhatIsNoCluster(t *testing.T) {
	t.Setenv("DOCKER_HOST", "tcp://127.0.0.1:1")
	if _, err := Find(t.Context(), "p"); err == nil || !strings.Contains(err.Error(), "give unix://") {
		t.Errorf("an engine elsewhere: %v", err)
	}
	t.Setenv("DOCKER_HOST", "unix://"+filepath.Join(t.TempDir(), "none"))
	if _, err := Find(t.Context(), "p"); !errors.Is(err, ErrNoEngine) {
		t.Errorf("no engine: %v", err)
	}
	if got := composeFiles(map[string]string{labelDir: "/a", labelFiles: "b.yml,/c.yml"}); !slices.Equal(got, []string{"-f", "/a/b.yml", "-f", "/c.yml"}) {
		t.Errorf("files %q", got)
	}
}
