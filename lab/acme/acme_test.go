package acme

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
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
)

const (
	host     = "meet.holdfast.test"
	generous = 2 * time.Minute
)

// TestNodesThatShareAName have one certificate made and renewed for all, at the page's port and at that of TURN, though the authority's
// check comes to any of them.
func TestNodesThatShareAName(t *testing.T) {
	binary, front, dir := build(t), freePort(t), t.TempDir()
	authority := newPebble(t, 1, front, 30)
	store := "127.0.0.1:" + strconv.Itoa(freePort(t))
	env := []string{
		"HOLDFAST_CLUSTER_KEY=" + strings.Repeat("k", 32), "HOLDFAST_API_KEYS=app:" + strings.Repeat("s", 32), "HOLDFAST_STORE=redis://" + store,
		"SSL_CERT_FILE=" + authority.trusts, "HOLDFAST_ACME_HOST=" + host, "HOLDFAST_ACME_DIRECTORY=" + authority.directory,
		"HOLDFAST_ACME_CACHE=" + dir, "HOLDFAST_ACME_ACCEPT_TERMS=true", "HOLDFAST_TURN_PUBLIC=" + host,
	}
	start(t, binary, nil, "store", "--listen", store)
	gossip := "127.0.0.1:" + strconv.Itoa(freePort(t))
	var pages, ports []string
	for _, name := range []string{"one", "two"} {
		page, turn := "127.0.0.1:"+strconv.Itoa(freePort(t)), "127.0.0.1:"+strconv.Itoa(freePort(t))
		args := []string{"signaling", "--name", name, "--listen", page, "--control-listen", "127.0.0.1:0", "--turn-tls-listen", turn, "--join", gossip}
		if name == "one" {
			args = append(args, "--solo", "--gossip-listen", gossip)
		} else {
			args = append(args, "--gossip-listen", "127.0.0.1:0")
		}
		start(t, binary, env, args...)
		pages, ports = append(pages, page), append(ports, page, turn)
	}
	start(t, binary, nil, "front", "--listen", "127.0.0.1:"+strconv.Itoa(front), "--backend", strings.Join(pages, ","))

	first := authority.serves(t, ports, nil)
	for _, page := range pages { // a balancer asks by address, and may not trust the answer
		conn, err := tls.Dial("tcp", page, &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			t.Fatalf("asked by address: %v", err)
		}
		_ = conn.Close()
	}
	if renewed := authority.serves(t, ports, first); renewed.NotAfter.Before(first.NotAfter) {
		t.Errorf("the renewed certificate ends at %v, the first at %v", renewed.NotAfter, first.NotAfter)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*+asking")); left != nil {
		t.Errorf("left in the directory: %v", left)
	}
}

// TestAFrontThatIsCheckedWithoutTLS is reached by the authority at the port that redirects, and nowhere else.
func TestAFrontThatIsCheckedWithoutTLS(t *testing.T) {
	binary, plain := build(t), freePort(t)
	authority := newPebble(t, plain, 1, 3600)
	page, redirect := "127.0.0.1:"+strconv.Itoa(freePort(t)), "127.0.0.1:"+strconv.Itoa(plain)
	start(t, binary, []string{"SSL_CERT_FILE=" + authority.trusts}, "front", "--listen", page, "--backend", "127.0.0.1:1", "--redirect-listen", redirect,
		"--acme-host", host, "--acme-directory", authority.directory, "--acme-cache", t.TempDir(), "--acme-accept-terms")
	authority.serves(t, []string{page}, nil)
	browser := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := browser.Get("http://" + redirect + "/r/lobby")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, response.Body)
	_ = response.Body.Close()
	if to := response.Header.Get("Location"); to != "https://"+page+"/r/lobby" {
		t.Errorf("who comes without TLS is sent to %q", to)
	}
}

// serves waits until all ports have the same certificate of the authority for the name, and another than before.
func (p *pebble) serves(t *testing.T, ports []string, before *x509.Certificate) (now *x509.Certificate) {
	t.Helper()
	var fault error
	for end := time.Now().Add(generous); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		now, fault = nil, nil
		for _, port := range ports {
			conn, err := tls.Dial("tcp", port, &tls.Config{ServerName: host, RootCAs: p.roots})
			if err != nil {
				fault = err
				break
			}
			leaf := conn.ConnectionState().PeerCertificates[0]
			_ = conn.Close()
			if now != nil && !leaf.Equal(now) {
				fault = fmt.Errorf("%s has another certificate", port)
			}
			now = leaf
		}
		if fault == nil && (before == nil || !now.Equal(before)) {
			return now
		}
	}
	t.Fatalf("no new certificate at %v: %v", ports, fault)
	return nil
}

var built = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "acme")
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

func start(t *testing.T, binary string, env []string, args ...string) {
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
}

// freePort returns a port outside the range from which the kernel gives ports to sockets that ask for none in particular.
func freePort(t *testing.T) int {
	t.Helper()
	for range 200 {
		port := 20_000 + rand.IntN(12_000)
		at := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		tcp, err := net.Listen("tcp", at)
		if err != nil {
			continue
		}
		udp, err := net.ListenPacket("udp", at)
		_ = tcp.Close()
		if err == nil {
			_ = udp.Close()
			return port
		}
	}
	t.Fatal("no port is free")
	return 0
}

func pemOf(cert *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw})
}

// testLog is what the authority says, shown when a test fails.
type testLog struct{ t *testing.T }

func (l testLog) Write(text []byte) (int, error) {
	if l.t.Context().Err() == nil { // its goroutines outlive the test
		l.t.Log(strings.TrimSpace(string(text)))
	}
	return len(text), nil
}
