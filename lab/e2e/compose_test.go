package e2e

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/testkit"
	"github.com/holdfast-rtc/holdfast/internal/tool"
	"github.com/holdfast-rtc/holdfast/lab/devcluster"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/signaling/access"
)

// composed is docker-compose.yml as the README runs it, with images made here: there need be no registry.
type composed struct {
	t       *testing.T
	project string
	env     []string
	access  devcluster.Access
	page    string
	// binary is that of the image.
	binary string
	// keys is the directory of both kinds of keys.
	keys string
}

// run returns what the command said.
func (c *composed) run(dir, name string, args ...string) string {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.t.Context()), 5*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, name, args...)
	command.Dir, command.Env = dir, append(os.Environ(), c.env...)
	said, err := command.CombinedOutput()
	if err != nil {
		c.t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, said)
	}
	return string(said)
}

func (c *composed) compose(args ...string) string {
	c.t.Helper()
	return c.run("../..", tool.Find(c.t, "docker-compose"), append([]string{"-p", c.project}, args...)...)
}

var composeService = regexp.MustCompile(`\b(sfu-\d|signaling-\d|front|redis)$`)

// asInReadme runs a command that the README tells people, for whichever service.
func (c *composed) asInReadme(args ...string) {
	c.t.Helper()
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		c.t.Fatal(err)
	}
	command := composeService.ReplaceAllString("    docker-compose "+strings.Join(args, " "), "sfu-1")
	if !regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(command) + `( +#.*)?$`).Match(readme) {
		c.t.Errorf("the README does not say%s", command)
	}
	c.compose(args...)
}

// exitCode is that of a service's stopped container.
func (c *composed) exitCode(service string) string {
	c.t.Helper()
	id := strings.TrimSpace(c.compose("ps", "-a", "-q", service))
	return strings.TrimSpace(c.run("", "docker", "inspect", "-f", "{{.State.ExitCode}}", id))
}

// healthy waits until every container says so.
func (c *composed) healthy() {
	c.t.Helper()
	eventually(c.t, 2*time.Minute, "every container is healthy", func() error {
		ids := strings.Fields(c.compose("ps", "-q"))
		said := c.run("", "docker", append([]string{"inspect", "-f", "{{.Name}} {{.State.Health.Status}} {{.Config.User}}"}, ids...)...)
		if n := strings.Count(said, " healthy "); n != len(ids) || n < 7 {
			return fmt.Errorf("%w: %s", errStates, said)
		}
		return nil
	})
}

// image puts the files, by their path in the image, on an empty one.
func (c *composed) image(name, dockerfile string, files map[string]string) {
	c.t.Helper()
	dir := c.t.TempDir()
	for to, from := range files {
		content, err := os.ReadFile(from)
		if err == nil {
			err = os.MkdirAll(filepath.Dir(filepath.Join(dir, to)), 0o755)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, to), content, 0o755)
		}
		if err != nil {
			c.t.Fatal(err)
		}
	}
	c.run(dir, "docker", "build", "-q", "-t", name, "-f", dockerfile, ".")
	c.t.Cleanup(func() { c.run("", "docker", "rmi", "-f", name) })
}

var sharedLibrary = regexp.MustCompile(`/\S+`)

// startComposed brings the file's cluster up. Without an engine there is nothing to test.
func startComposed(t *testing.T) *composed {
	t.Helper()
	if said, err := exec.CommandContext(t.Context(), "docker", "info").CombinedOutput(); err != nil {
		t.Skipf("there is no container engine here: %v: %s", err, tail(string(said), 1))
	}
	address := testkit.FreeAddress(t)
	c := &composed{t: t, project: fmt.Sprint("holdfast-test-", os.Getpid()), page: "http://" + address + "/"}
	c.binary, c.keys = filepath.Join(t.TempDir(), "holdfast"), t.TempDir()
	holdfast, redis := c.project+":holdfast", c.project+":redis"
	c.env = []string{
		"HOLDFAST_IMAGE=" + holdfast, "HOLDFAST_REDIS_IMAGE=" + redis, "HOLDFAST_PAGE=" + address,
		"HOLDFAST_KEYS=" + c.keys, fmt.Sprintf("HOLDFAST_USER=%d:%d", os.Getuid(), os.Getgid()), "CGO_ENABLED=0",
	}
	c.run("../..", "go", "build", "-tags", "node", "-ldflags", "-s -w", "-o", c.binary, ".")
	c.newKeys(c.keys)
	scratch, err := filepath.Abs("../../Dockerfile.scratch")
	if err != nil {
		t.Fatal(err)
	}
	c.image(holdfast, scratch, map[string]string{"holdfast": c.binary, "LICENSE": "../../LICENSE", "NOTICE": "../../NOTICE"})
	server, err := filepath.EvalSymlinks(tool.Find(t, "redis-server"))
	if err != nil {
		t.Fatal(err)
	}
	cli, err := filepath.EvalSymlinks(tool.Find(t, "redis-cli"))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{"root/usr/bin/redis-server": server, "root/usr/bin/redis-cli": cli, "data/LICENSE": "../../LICENSE"}
	for _, library := range sharedLibrary.FindAllString(c.run("", "ldd", server, cli), -1) {
		if library = strings.TrimSuffix(library, ":"); library != server && library != cli {
			files["root"+library] = library
		}
	}
	dockerfile := filepath.Join(t.TempDir(), "Dockerfile")
	if err := os.WriteFile(dockerfile, []byte("FROM scratch\nCOPY root /\nCOPY --chown=999:1000 data /data\nWORKDIR /data\nENV PATH=/usr/bin\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.image(redis, dockerfile, files)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(tail(c.compose("logs", "--no-color", "--tail", "20"), 200))
		}
		c.compose("down", "-v", "-t", "1")
	})
	c.asInReadme("up", "-d")
	eventually(t, 2*time.Minute, "the composed cluster is ready", func() error {
		answer, err := http.Get(c.page + "readyz") //nolint:noctx // it is bounded by the loop
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			return fmt.Errorf("readyz says %s", answer.Status)
		}
		return nil
	})
	return c
}

// newKeys makes both kinds of keys as the README says, and has access by the API key. Root gives them to the containers' user.
func (c *composed) newKeys(dir string) {
	c.t.Helper()
	files := map[string][]string{"cluster/key": nil, "api/keys": {"--api", "app"}}
	for file, kind := range files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, file)), 0o755); err != nil {
			c.t.Fatal(err)
		}
		c.run(dir, c.binary, slices.Concat([]string{"keys", "new"}, kind, []string{file})...)
	}
	if os.Getuid() == 0 {
		c.env = slices.DeleteFunc(c.env, func(pair string) bool { return strings.HasPrefix(pair, "HOLDFAST_USER=") })
		c.run(dir, "chown", "-R", "65534:65534", ".")
		c.run(dir, "chmod", "755", ".")
	}
	text, err := os.ReadFile(filepath.Join(dir, "api/keys"))
	if err != nil {
		c.t.Fatal(err)
	}
	key, secret, _ := strings.Cut(strings.TrimSpace(string(text)), ":")
	c.access = devcluster.Access{Key: key, Secret: secret}
}

// rotates replaces the cluster key under the call as docs/KEYS.md says, a step when all five nodes have done the one before.
func (c *composed) rotates() {
	c.t.Helper()
	file := filepath.Join(c.keys, "cluster/key")
	for i, step := range []string{"new", "use", "drop"} {
		c.run("", c.binary, "keys", step, file)
		eventually(c.t, time.Minute, "every node has the keys of step "+step, func() error {
			if n := strings.Count(c.compose("logs", "--no-color"), "keys replaced"); n < 5*(i+1) {
				return fmt.Errorf("%w: %d times in the logs", errStates, n)
			}
			return nil
		})
	}
}

// refusesAWrongKey replaces a service's container by one with other keys. It is never ready, and says why, so that an upgrade stops there.
func (c *composed) refusesAWrongKey(service string) {
	c.t.Helper()
	env, access, wrong := c.env, c.access, c.t.TempDir()
	c.newKeys(wrong)
	c.env, c.access = append(slices.Clone(env), "HOLDFAST_KEYS="+wrong), access
	c.compose("up", "-d", "--no-deps", service)
	c.env = env
	eventually(c.t, time.Minute, "the node warns", func() error {
		if said := c.compose("logs", "--no-color", service); !strings.Contains(said, "no other node is reached") {
			return fmt.Errorf("%w: %s", errStates, tail(said, 3))
		}
		return nil
	})
	id := strings.TrimSpace(c.compose("ps", "-q", service))
	if state := strings.TrimSpace(c.run("", "docker", "inspect", "-f", "{{.State.Health.Status}}", id)); state == "healthy" {
		c.t.Errorf("with a wrong key %s is called healthy", service)
	}
	said := c.run("", "docker", "inspect", "-f", "{{range .State.Health.Log}}{{.ExitCode}} {{.Output}}{{end}}", id)
	if !strings.Contains(said, "no other node has been met") {
		c.t.Errorf("with a wrong key the health of %s says %s", service, said)
	}
}

// joins opens a link as an application hands it out, and presses the button.
func (c *composed) joins(room, who string) *participant {
	c.t.Helper()
	grant := access.Everything(who, ring.RoomID(room))
	grant.Name = who
	token, err := access.Mint(c.access.Key, c.access.Secret, grant, time.Hour)
	if err != nil {
		c.t.Fatal(err)
	}
	p := &participant{page: openPage(c.t, who, callAddress(c.page, room, who, url.Values{"token": {token}}))}
	eventually(c.t, time.Minute, who+" presses the button", func() error {
		// Containers that come up change the host's networks, and Chromium then ends what it loads.
		var state string
		err := p.eval(`(() => {
		  const enter = document.querySelector('#enter');
		  if (window.call) return 'in';
		  if (!enter?.textContent) { if (performance.now() > 5000) setTimeout(() => location.reload()); }
		  else if (document.querySelector('#join').checkValidity()) enter.click();
		  return 'not in';
		})()`, &state)
		if err == nil && state != "in" {
			err = errStates
		}
		return err
	})
	return p
}

// addresses are those of the running containers in their network, by service.
func (c *composed) addresses() map[string]string {
	c.t.Helper()
	said := c.run("", "docker", "ps", "--no-trunc", "--filter", "label=com.docker.compose.project="+c.project, "--format", "{{.ID}}")
	format := `{{index .Config.Labels "com.docker.compose.service"}} {{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}`
	at := map[string]string{}
	for line := range strings.Lines(c.run("", "docker", append([]string{"inspect", "-f", format}, strings.Fields(said)...)...)) {
		service, address, _ := strings.Cut(strings.TrimSpace(line), " ")
		at[service] = address
	}
	return at
}

var documentedTarget = regexp.MustCompile(`"((?:sfu|signaling)-\d):(\d+)"`)

// scraped starts a Prometheus on the host under docs/monitoring/prometheus.yml, with the containers' addresses in place of their names. It
// reads all five nodes, and from them what a call and a failover before have counted.
func (c *composed) scraped() *testkit.Prometheus {
	c.t.Helper()
	text, err := os.ReadFile("../../docs/monitoring/prometheus.yml")
	if err != nil {
		c.t.Fatal(err)
	}
	rules, err := filepath.Abs("../../docs/monitoring/alerts.yml")
	if err != nil {
		c.t.Fatal(err)
	}
	at := c.addresses()
	config := documentedTarget.ReplaceAllStringFunc(string(text), func(target string) string {
		part := documentedTarget.FindStringSubmatch(target)
		return strconv.Quote(net.JoinHostPort(at[part[1]], part[2]))
	})
	prometheus := testkit.StartPrometheus(c.t, strings.NewReplacer("15s", "1s", "alerts.yml", rules).Replace(config))
	prometheus.Until(c.t, `count(up == 1) == 5 and count(count by (node) (holdfast_build_info)) == 5`, true)
	for _, series := range []string{`peers`, `packets_forwarded_total`, `media_connections{transport="udp"}`, `sockets`, `rehomings_total{cause="node_dead"}`, `gap_seconds_count`, `build_info{role="sfu"}`} {
		if got, err := prometheus.Query(c.t.Context(), `holdfast_`+series+` > 0`); err != nil || len(got) == 0 {
			c.t.Errorf("in the composed cluster holdfast_%s is 0 (%v)", series, err)
		}
	}
	return prometheus
}

// events are the lines of `holdfast events` in a signaling node's container, each an event as JSON.
func (c *composed) events() []string {
	c.t.Helper()
	said := c.compose("exec", "-T", "signaling-1", "/holdfast", "events", "--since", "1h", "--json")
	return strings.Split(strings.TrimSpace(said), "\n")
}

// takesWork waits until the store listens and each node says at its own address that it is ready. The engine would say so up to 5 s later.
func (c *composed) takesWork() {
	c.t.Helper()
	eventually(c.t, time.Minute, "every node is ready", func() error {
		at := c.addresses()
		if len(at) != 7 {
			return fmt.Errorf("%w: %d containers of 7 run", errStates, len(at))
		}
		for service, address := range at {
			if err := isReady(service, address); err != nil {
				return fmt.Errorf("%s: %w", service, err)
			}
		}
		return nil
	})
}

func isReady(service, address string) error {
	port := "7880"
	switch {
	case service == "redis":
		conn, err := net.DialTimeout("tcp", net.JoinHostPort(address, "6379"), time.Second)
		if err == nil {
			conn.Close()
		}
		return err
	case strings.HasPrefix(service, "sfu-"):
		port = "7984"
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 5 * time.Second}
	answer, err := client.Get("http://" + net.JoinHostPort(address, port) + "/readyz") //nolint:noctx // the client has a limit
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%w: readyz says %s", errStates, answer.Status)
	}
	return nil
}

// forgetsNothing replaces every container, first the one that is stopped, each when the one before is ready. Every event that was there
// before is there afterwards.
func (c *composed) forgetsNothing(stopped string) {
	c.t.Helper()
	before := c.events()
	for _, kind := range []string{"node_up", "room_opened", "node_down", "room_rehomed", "room_back", "room_moved", "node_left"} {
		if !slices.ContainsFunc(before, func(line string) bool { return strings.Contains(line, `"kind":"`+kind+`"`) }) {
			c.t.Errorf("before the containers are replaced there is no event %s", kind)
		}
	}
	was := strings.Fields(c.compose("ps", "-a", "-q"))
	services := []string{"redis", "sfu-1", "sfu-2", "sfu-3", "signaling-1", "signaling-2", "front"}
	services = slices.Insert(slices.DeleteFunc(services, func(one string) bool { return one == stopped }), 0, stopped)
	for _, service := range services {
		began := time.Now()
		c.asInReadme("up", "-d", "--force-recreate", "--no-deps", service)
		c.takesWork()
		c.t.Logf("%s was replaced in %v", service, time.Since(began).Round(time.Millisecond))
	}
	is := strings.Fields(c.compose("ps", "-q"))
	if len(is) != len(services) {
		c.t.Errorf("%d containers run, want %d", len(is), len(services))
	}
	for _, id := range is {
		if slices.Contains(was, id) {
			c.t.Errorf("container %s was not replaced", id)
		}
	}
	after := c.events()
	for _, line := range before {
		if !slices.Contains(after, line) {
			c.t.Errorf("after every container was replaced, this event is gone: %s", line)
		}
	}
	c.t.Logf("%d events before, %d after", len(before), len(after))
}

// docker-compose.yml runs as it is: two people see each other in Chromium, the container of their media node is killed, and they
// see each other again on the same connections. The killed one comes back with a wrong key, which is found, and then with the right one; the cluster key is replaced under the call. Then the next one is stopped: it drains, its process ends with 0, and the call goes on.
// Prometheus has every documented metric of it, and no event is lost when every container is replaced. It is parallel to nothing: it changes the host's networks.
func TestComposeFile(t *testing.T) { //nolint:paralleltest // as its comment says
	needChromium(t, 3)
	c := startComposed(t)
	people := []*participant{c.joins("board", "Ada"), c.joins("board", "Bob")}
	for _, p := range people {
		p.knowsItself(t)
	}
	allDecodeAll(t, time.Minute, people)
	var before []callStats
	for _, p := range people {
		p.mark(t)
		before = append(before, p.mustStats(t))
	}
	node := before[0].Node
	// A verb finds the node of its own container, its port and its keys.
	if said := c.compose("exec", "-T", "signaling-2", "/holdfast", "rooms"); !strings.Contains(said, "board") || !strings.Contains(said, node) || !strings.Contains(said, "Ada") {
		t.Errorf("in the container the rooms are\n%s", said)
	}
	c.asInReadme("kill", node)
	for i, p := range people {
		if after := p.awaitsMove(t, before[i], "restart"); after.PcID != before[i].PcID || after.Node == node {
			t.Errorf("%s is on %s with connection %d, before on %s with %d", p.name, after.Node, after.PcID, node, before[i].PcID)
		}
	}
	allDecodeAll(t, time.Minute, people)
	c.refusesAWrongKey(node)
	c.asInReadme("up", "-d") // the killed one
	c.healthy()
	prometheus := c.scraped()
	c.rotates()
	node = people[0].mustStats(t).Node
	began := time.Now()
	c.asInReadme("stop", node)
	t.Logf("%s drained and ended in %v", node, time.Since(began).Round(time.Millisecond))
	if code := c.exitCode(node); code != "0" {
		t.Errorf("%s ended with %s, want 0", node, code)
	}
	for _, p := range people {
		if now := p.mustStats(t).Node; now == node {
			t.Errorf("%s is still on %s, which has ended", p.name, node)
		}
	}
	allDecodeAll(t, time.Minute, people)
	for _, p := range people {
		p.mustEval(t, "(call.leave(), 0)", nil)
	}
	prometheus.Until(t, `sum(holdfast_session_ends_total) >= 2`, true)
	prometheus.HasDocumented(t, "../../docs/METRICS.md")
	c.forgetsNothing(node)
}
