package node

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/acme"
	"golang.org/x/crypto/acme/autocert"

	"github.com/holdfast-rtc/holdfast/internal/testkit"
)

// TestAnAuthorityThatDoesNotAnswer is told in a sentence, and the node still answers who asks by address. What a test server certifies
// is in lab/acme.
func TestAnAuthorityThatDoesNotAnswer(t *testing.T) {
	flags := tlsFlags{acmeFlags: acmeFlags{ACMEHost: []string{"meet.example.org"}, ACMECache: filepath.Join(t.TempDir(), "new"), ACMEDirectory: "https://127.0.0.1:1/directory", ACMEAcceptTerms: true}}
	if err := flags.checkTLS(); err != nil {
		t.Fatal(err)
	}
	page := loopback(t)
	p, err := flags.listenTLS(t.Context(), page.Addr())
	if err != nil {
		t.Fatal(err)
	}
	secure := tls.NewListener(page, p.config())
	var ended sync.WaitGroup
	ended.Go(func() {
		for {
			conn, err := secure.Accept()
			if err != nil {
				return
			}
			_ = conn.(*tls.Conn).Handshake() //nolint:forcetypeassert // of tls.NewListener
			_ = conn.Close()
		}
	})
	said := &heard{}
	ctx, stop := context.WithCancel(t.Context())
	ended.Go(func() { _ = p.watch(ctx, slog.New(slog.NewTextHandler(said, nil))) })
	defer func() { stop(); _ = secure.Close(); ended.Wait() }()

	testkit.Eventually(t, "the log has a hint", func() bool { return strings.Contains(said.String(), "does the name's DNS record lead here") })
	shakes := func(name string, protocols ...string) error {
		conn, err := tls.Dial("tcp", page.Addr().String(), &tls.Config{ServerName: name, InsecureSkipVerify: true, NextProtos: protocols}) //nolint:gosec // to look at it
		if err == nil {
			_ = conn.Close()
		}
		return err
	}
	for _, row := range []struct {
		name      string
		protocols []string
		works     bool
	}{{"", nil, true}, {"signaling-1", nil, true}, {"meet.example.org", nil, false}, {"meet.example.org", []string{acme.ALPNProto}, false}, {"other.example.org", []string{acme.ALPNProto}, false}} {
		if err := shakes(row.name, row.protocols...); (err == nil) != row.works {
			t.Errorf("asked for %q by %v: %v", row.name, row.protocols, err)
		}
	}
	if files, _ := filepath.Glob(filepath.Join(flags.ACMECache, "*asking*")); files != nil {
		t.Errorf("left in the directory: %v", files)
	}
}

// heard is a log that may be read while it is written.
type heard struct {
	mu   sync.Mutex // guards text
	text bytes.Buffer
}

func (h *heard) Write(text []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.Write(text)
}

func (h *heard) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.String()
}

// TestOneProcessAsks of two that share a directory: without a certificate the other is told, in a renewal it waits for what the first gets.
func TestOneProcessAsks(t *testing.T) {
	const host = "meet.example.org"
	dir := t.TempDir()
	processes := [2]*authority{}
	for i := range processes {
		var err error
		if processes[i], err = newAuthority([]string{host}, "https://127.0.0.1:1", dir); err != nil {
			t.Fatal(err)
		}
	}
	one, two := processes[0].manager.Cache, processes[1].manager.Cache

	asking, asked := context.WithCancel(t.Context())
	if _, err := one.Get(asking, host); !errors.Is(err, autocert.ErrCacheMiss) {
		t.Fatalf("the first, who is to ask: %v", err)
	}
	if _, err := two.Get(t.Context(), host); !errors.Is(err, errOtherAsks) {
		t.Errorf("the second asks as well: %v", err)
	}
	due, renewed := certified(t, time.Hour), certified(t, 3*time.Hour)
	put := func(certificate []byte) {
		if err := one.Put(t.Context(), host, certificate); err != nil {
			t.Fatal(err)
		}
	}
	put(due)
	asked()
	testkit.Eventually(t, "the lock is gone", func() bool { return len(locks(dir)) == 0 })
	if got, err := two.Get(t.Context(), host); err != nil || !bytes.Equal(got, due) || len(locks(dir)) > 0 {
		t.Errorf("the second takes what is there at once: %v, locks %v", err, locks(dir))
	}

	for _, process := range processes {
		process.names[host].Store(&tls.Certificate{})
	}
	renewing, done := context.WithCancel(t.Context())
	if got, err := one.Get(renewing, host); err != nil || !bytes.Equal(got, due) || len(locks(dir)) != 1 {
		t.Fatalf("the first, who is to renew: %v, locks %v", err, locks(dir))
	}
	waited := make(chan []byte)
	go func() {
		got, _ := two.Get(t.Context(), host)
		waited <- got
	}()
	select {
	case <-waited:
		t.Error("the second does not wait")
	case <-time.After(time.Second):
	}
	put(renewed)
	done()
	if !bytes.Equal(<-waited, renewed) {
		t.Error("the second has another certificate than the first")
	}

	put(due) // by the time of the next renewal, whose process died
	if _, err := processes[0].alone(host); err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-2 * askingStale)
	if err := os.Chtimes(locks(dir)[0], old, old); err != nil {
		t.Fatal(err)
	}
	if got, err := two.Get(t.Context(), host); err != nil || !bytes.Equal(got, due) {
		t.Errorf("after the death of the first: %v", err)
	}
}

// TestADeadProcessIsFollowedByOne: of two that find its stale lock one asks. Should the first live after all, it removes only its own lock.
func TestADeadProcessIsFollowedByOne(t *testing.T) {
	const host = "meet.example.org"
	a := &authority{dir: t.TempDir()}
	for range 500 {
		late, err := a.alone(host)
		if err != nil {
			t.Fatal(err)
		}
		old := time.Now().Add(-2 * askingStale)
		if err := os.Chtimes(locks(a.dir)[0], old, old); err != nil {
			t.Fatal(err)
		}
		var both sync.WaitGroup
		releases := make(chan func(), 2)
		for range 2 {
			both.Go(func() {
				if release, err := a.alone(host); err == nil {
					releases <- release
				} else if !errors.Is(err, errOtherAsks) {
					t.Error(err)
				}
			})
		}
		both.Wait()
		late()
		if len(releases) != 1 || len(locks(a.dir)) != 1 {
			t.Fatalf("%d ask, and there are %d locks; want one", len(releases), len(locks(a.dir)))
		}
		(<-releases)()
		if left, _ := os.ReadDir(a.dir); len(left) > 0 {
			t.Fatalf("%v is left", left)
		}
	}
}

func locks(dir string) []string {
	found, _ := filepath.Glob(filepath.Join(dir, "*+asking"))
	return found
}

// certified is a file in autocert's form, of a certificate of three hours that has so much left.
func certified(t *testing.T, left time.Duration) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ends := time.Now().Add(left)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: ends.Add(-3 * time.Hour), NotAfter: ends}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return append(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private}), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed})...)
}

// TestTheCheckWithoutTLS comes with a port where that is not 80, and for our names only.
func TestTheCheckWithoutTLS(t *testing.T) {
	a, err := newAuthority([]string{"meet.example.org"}, "https://127.0.0.1:1", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(a.dir, "token+http-01"), []byte("answer"), 0o600); err != nil {
		t.Fatal(err)
	}
	for url, want := range map[string]int{
		"http://meet.example.org/.well-known/acme-challenge/token":           http.StatusOK,
		"http://meet.example.org:5002/.well-known/acme-challenge/token":      http.StatusOK,
		"http://meet.example.org/.well-known/acme-challenge/other":           http.StatusNotFound,
		"http://meet.example.org/.well-known/acme-challenge/../acme_account": http.StatusNotFound,
		"http://other.example.org/.well-known/acme-challenge/token":          http.StatusForbidden,
		"http://meet.example.org/r/lobby":                                    http.StatusTeapot,
	} {
		answer := httptest.NewRecorder()
		a.overHTTP(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })).
			ServeHTTP(answer, httptest.NewRequest(http.MethodGet, url, http.NoBody))
		if answer.Code != want {
			t.Errorf("%s: %d, want %d", url, answer.Code, want)
		}
	}
}

func TestACertificateThatIsNotRenewedIsTold(t *testing.T) {
	from := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	cert := &x509.Certificate{NotBefore: from, NotAfter: from.AddDate(0, 0, 90)}
	for days, want := range map[int]bool{1: false, 61: false, 74: false, 76: true, 91: true} {
		if got := unrenewed(cert, from.AddDate(0, 0, days)); got != want {
			t.Errorf("after %d days: %v", days, got)
		}
	}
}

// TestARelayHasThePagesCertificate unless it has one of its own.
func TestARelayHasThePagesCertificate(t *testing.T) {
	marked := &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return nil, net.ErrClosed }}
	node, err := turnFlags{TurnTLSListen: "127.0.0.1:0"}.listenTurn(t.Context(), marked)
	if err != nil {
		t.Fatal(err)
	}
	defer node.close()
	go func() { _, _ = tls.Dial("tcp", node.at.TLS.Addr().String(), &tls.Config{InsecureSkipVerify: true}) }() //nolint:gosec // it fails
	conn, err := node.at.TLS.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.(*tls.Conn).Handshake(); !errors.Is(err, net.ErrClosed) { //nolint:forcetypeassert // of tls.NewListener
		t.Errorf("the handshake: %v", err)
	}
}
