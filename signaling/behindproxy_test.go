package signaling

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"github.com/holdfast-rtc/holdfast/internal/testkit"
	"github.com/holdfast-rtc/holdfast/internal/tool"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// documentedProxy is an example of docs/NETWORK.md that runs in front of a node, at a socket in the file system, so that no port is taken.
type documentedProxy struct {
	t      *testing.T
	client *http.Client
}

// example returns the example of a program, as it is.
func example(t *testing.T, program string) string {
	t.Helper()
	page, err := os.ReadFile("../docs/NETWORK.md")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile("(?s)\n```" + program + "\n(.*?)```\n").FindSubmatch(page)
	if found == nil {
		t.Fatalf("docs/NETWORK.md has no example of %s", program)
	}
	return string(found[1])
}

// changed replaces what differs from machine to machine. Each text must be there.
func changed(t *testing.T, config string, pairs ...string) string {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(config, pairs[i]) {
			t.Fatalf("the example has no %q", pairs[i])
		}
		config = strings.ReplaceAll(config, pairs[i], pairs[i+1])
	}
	return config
}

// startDocumented runs the program with the example, changed by pairs of texts.
func startDocumented(t *testing.T, program, to string, pairs ...string) *documentedProxy {
	t.Helper()
	path := tool.Find(t, program)
	dir, err := os.MkdirTemp("", "proxy-") // A socket's name must be short.
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	certFile, keyFile := testkit.Certificate(t, "meet.example.org")
	socket, file := filepath.Join(dir, "socket"), filepath.Join(dir, "config")
	config := changed(t, changed(t, example(t, program), pairs...), "signaling-1:7880", to, "signaling-2:7880", to)
	var args []string
	switch program {
	case "nginx":
		config = "daemon off;\nmaster_process off;\nerror_log stderr;\npid " + dir + "/pid;\nevents {}\nhttp {\naccess_log off;\n" + tempPaths(dir) + changed(
			t, config, "listen 443", "listen unix:"+socket, "/etc/ssl/meet.pem", certFile, "/etc/ssl/meet.key", keyFile) + "}\n"
		args = []string{"-p", dir, "-e", "stderr", "-c", file}
	case "caddy":
		config = "{\n admin off\n auto_https off\n}\n" + changed(t, config, "meet.example.org {", "https://meet.example.org {\n bind unix/"+socket+"\n tls "+certFile+" "+keyFile)
		args = []string{"run", "--adapter", "caddyfile", "--config", file}
	case "haproxy":
		both := filepath.Join(dir, "meet.pem")
		writeBoth(t, both, certFile, keyFile)
		config = changed(t, config, "bind :443", "bind "+socket, "/etc/haproxy/meet.pem", both)
		args = []string{"-db", "-f", file}
	}
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	said := &testkit.Log{}
	command := exec.Command(path, args...) //nolint:gosec // a listed tool
	command.Stdout, command.Stderr = said, said
	command.Env = append(os.Environ(), "HOME="+dir, "XDG_DATA_HOME="+dir, "XDG_CONFIG_HOME="+dir)
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
		if t.Failed() {
			t.Logf("%s\n%s", config, said)
		}
	})
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}
	p := &documentedProxy{t: t, client: &http.Client{
		Transport:     &http.Transport{DialContext: dial, DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: testkit.Trusting(t, certFile).RootCAs, MinVersion: tls.VersionTLS12}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	testkit.Within(t, generous, program+" leads to the node", func() error {
		status, body, _, err := p.get("/call/readyz")
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("%d %s", status, body)
		}
		return err
	})
	return p
}

// tempPaths keeps nginx out of directories of root.
func tempPaths(dir string) string {
	var paths strings.Builder
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		fmt.Fprintf(&paths, "%s_temp_path %s/%s;\n", kind, dir, kind)
	}
	return paths.String()
}

func writeBoth(t *testing.T, to string, files ...string) {
	t.Helper()
	var all []byte
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, text...)
	}
	if err := os.WriteFile(to, all, 0o600); err != nil {
		t.Fatal(err)
	}
}

func (p *documentedProxy) get(path string) (status int, body string, header http.Header, err error) {
	request, err := http.NewRequestWithContext(p.t.Context(), http.MethodGet, "https://meet.example.org"+path, http.NoBody)
	if err != nil {
		return 0, "", nil, err
	}
	answer, err := p.client.Do(request)
	if err != nil {
		return 0, "", nil, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return answer.StatusCode, string(text), answer.Header, err
}

// connects opens the WebSocket as the page does.
func (p *documentedProxy) connects() (*websocket.Conn, int) {
	ctx, cancel := context.WithTimeout(p.t.Context(), generous)
	defer cancel()
	conn, answer, err := websocket.Dial(ctx, "wss://meet.example.org/call/ws", &websocket.DialOptions{
		Subprotocols: []string{wire.Subprotocol}, HTTPClient: p.client, HTTPHeader: http.Header{"Origin": {"https://meet.example.org"}},
	})
	if err != nil {
		if answer == nil {
			p.t.Fatal(err)
		}
		return nil, answer.StatusCode
	}
	conn.SetReadLimit(wire.MaxMessageBytes)
	p.t.Cleanup(func() { _ = conn.CloseNow() })
	return conn, http.StatusSwitchingProtocols
}

// TestProxiesOfTheDocument runs the examples of docs/NETWORK.md: a page under a path of its host is found, also without the slash, and its
// WebSocket is let in. Then nginx keeps the path, and changes Host.
func TestProxiesOfTheDocument(t *testing.T) {
	const host = "proxy_set_header Host $http_host;"
	said := &testkit.Log{}
	r := newRig(t)
	r.log = slog.New(slog.NewTextHandler(said, nil))
	media := r.node("sfu-1")
	behind := func(c *Config) { c.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")} }
	trusting, keeping := r.signalingNode(behind), r.signalingNode(func(c *Config) { behind(c); c.PathPrefix = "/call" })
	for i, row := range []struct {
		name, program string
		node          *signalingNode
		pairs         []string
		refused       bool
	}{
		{name: "nginx", program: "nginx", node: trusting},
		{name: "caddy", program: "caddy", node: trusting},
		{name: "haproxy", program: "haproxy", node: trusting},
		{name: "nginx that passes the path on", program: "nginx", node: keeping, pairs: []string{"http://holdfast/;", "http://holdfast;"}},
		{name: "nginx that changes Host", program: "nginx", node: trusting, pairs: []string{host, ""}, refused: true},
		{
			name: "nginx that changes Host and says so", program: "nginx", node: trusting,
			pairs: []string{host, "proxy_set_header X-Forwarded-Host $http_host;"},
		},
		{
			name: "nginx that nobody trusts", program: "nginx", node: r.signalingNode(nil), refused: true,
			pairs: []string{host, "proxy_set_header X-Forwarded-Host $http_host;"},
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := startDocumented(t, row.program, row.node.addr, row.pairs...)
			if status, _, header, err := p.get("/call"); err != nil || status/100 != 3 || !strings.HasSuffix(header.Get("Location"), "/call/") {
				t.Errorf("without the slash: %d to %q, %v", status, header.Get("Location"), err)
			}
			if status, body, _, err := p.get("/call/"); err != nil || status != http.StatusOK || !strings.Contains(body, "hello") {
				t.Errorf("the page: %d %s, %v", status, body, err)
			}
			if status, body, _, err := p.get("/call/api/v1/config"); err != nil || status != http.StatusOK || !strings.Contains(body, "protocol") {
				t.Errorf("the API: %d %s, %v", status, body, err)
			}
			conn, status := p.connects()
			if (conn == nil) != row.refused {
				t.Fatalf("its WebSocket is answered with %d", status)
			}
			if row.refused {
				if status != http.StatusForbidden {
					t.Errorf("it is refused with %d", status)
				}
				return
			}
			room := fmt.Sprint("room-", i)
			r.placer.set(pinRoom(room), media.pin(firstEpoch))
			c := &client{t: t, conn: conn}
			c.say(&wire.Join{Token: r.token(room, "Ada")})
			hear[*wire.Joined](c)
		})
	}
	if text := said.String(); strings.Count(text, "a page may not connect") != 2 || !strings.Contains(text, "X-Forwarded-Host") || !strings.Contains(text, "https://meet.example.org") {
		t.Errorf("the log says of the pages that were not let in:\n%s", text)
	}
}

func TestPathPrefix(t *testing.T) {
	for _, good := range []string{"", "/call", "/a/b", "/holdfast", "/x.y-z_~"} {
		if err := checkPathPrefix(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for _, bad := range []string{"/", "call", "/call/", "//call", "/a/../b", "/a b", "/%2e", "/call?x", "https://host/call", "/api", "/ws/x", "/readyz"} {
		if checkPathPrefix(bad) == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
	r := newRig(t)
	e := r.signalingNode(func(c *Config) { c.PathPrefix = "/call" })
	for path, want := range map[string]int{"/readyz": 200, "/call/readyz": 200, "/call/": 200, "/": 200, "/called/": 404, "/call/api/v1/config": 200, "/call/call/": 404} {
		if status, body, _ := e.get(path, ""); status != want {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
}

func TestForwardedHost(t *testing.T) {
	trusted := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	for _, row := range []struct{ from, header, want string }{
		{"10.1.2.3:4", "meet.example.org", "meet.example.org"},
		{"10.1.2.3:4", "meet.example.org:8443, inner", "meet.example.org:8443"},
		{"10.1.2.3:4", "", ""},
		{"10.1.2.3:4", strings.Repeat("a", maxHostBytes+1), ""},
		{"192.0.2.1:4", "meet.example.org", ""},
		{"nobody", "meet.example.org", ""},
	} {
		q := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/ws", http.NoBody)
		q.RemoteAddr = row.from
		q.Header.Set("X-Forwarded-Host", row.header)
		if got := forwardedHost(q, trusted); got != row.want {
			t.Errorf("%s from %s is %q, want %q", row.header, row.from, got, row.want)
		}
	}
}
