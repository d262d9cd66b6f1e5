package node

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast-rtc/holdfast/balancer"
	"github.com/holdfast-rtc/holdfast/internal/testkit"
)

// A front ends TLS, passes HTTP/2 on, takes a replaced certificate, and sends who comes without TLS to https.
func TestAFrontWithTLS(t *testing.T) {
	backend := &http.Server{
		Protocols: &http.Protocols{}, ReadHeaderTimeout: time.Minute,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Proto) }),
	}
	backend.Protocols.SetHTTP1(true)
	backend.Protocols.SetUnencryptedHTTP2(true)
	behind := loopback(t)
	flags := tlsFlags{RedirectListen: "127.0.0.1:0"}
	flags.TLSCert, flags.TLSKey = testkit.Certificate(t, "127.0.0.1")
	page := loopback(t)
	p, err := flags.listenTLS(t.Context(), page.Addr())
	if err != nil {
		t.Fatal(err)
	}
	files := p.certificates.(*certificate) //nolint:forcetypeassert // what else would fail the test
	cfg := balancer.DefaultConfig()
	cfg.Backends, cfg.CheckEvery, cfg.TLS = []string{behind.Addr().String()}, 0, p.config()
	log := slog.New(slog.DiscardHandler)
	ctx, stop := context.WithCancel(t.Context())
	group, work := errgroup.WithContext(ctx)
	group.Go(func() error { _ = backend.Serve(behind); return nil })
	group.Go(func() error { return balancer.New(cfg, log).Serve(work, page) })
	group.Go(func() error { return p.serveRedirect(work, log) })
	defer func() {
		stop()
		_ = backend.Close()
		if err := group.Wait(); err != nil {
			t.Error(err)
		}
	}()

	ask := func(url, trusted string) (*http.Response, string) {
		t.Helper()
		transport := &http.Transport{TLSClientConfig: testkit.Trusting(t, trusted), ForceAttemptHTTP2: true}
		defer transport.CloseIdleConnections()
		browser := &http.Client{Transport: transport, Timeout: time.Minute, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		response, err := browser.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return response, string(text)
	}
	if _, proto := ask("https://"+page.Addr().String()+"/", flags.TLSCert); proto != "HTTP/2.0" {
		t.Errorf("the backend was asked over %s, want HTTP/2.0", proto)
	}
	response, _ := ask("http://"+p.redirect.Addr().String()+"/r/lobby?a=%2F", flags.TLSCert)
	if to, want := response.Header.Get("Location"), "https://"+page.Addr().String()+"/r/lobby?a=%2F"; to != want || response.StatusCode != http.StatusPermanentRedirect {
		t.Errorf("who came without TLS: %s to %q, want 308 to %q", response.Status, to, want)
	}

	otherCert, otherKey := testkit.Certificate(t, "127.0.0.1")
	replace(t, otherKey, flags.TLSKey)
	if _, err := files.read(); err == nil {
		t.Error("a key that is not the certificate's was taken")
	}
	replace(t, otherCert, flags.TLSCert)
	if changed, err := files.read(); err != nil || !changed {
		t.Errorf("the replaced files: changed %v, %v", changed, err)
	}
	response, _ = ask("https://"+page.Addr().String()+"/", otherCert)
	if !bytes.Equal(response.TLS.PeerCertificates[0].Raw, files.current.Load().Certificate[0]) {
		t.Error("a new connection has not the new certificate")
	}
}

func TestRedirectsLeadToTheNameThatWasAskedFor(t *testing.T) {
	for _, row := range []struct{ port, host, want string }{
		{"443", "example.org", "https://example.org/x"},
		{"443", "example.org:80", "https://example.org/x"},
		{"443", "[2001:db8::1]:80", "https://[2001:db8::1]:443/x"},
		{"7880", "example.org", "https://example.org:7880/x"},
		{"7880", "[2001:db8::1]", "https://[2001:db8::1]:7880/x"},
	} {
		request := httptest.NewRequest(http.MethodGet, "http://"+row.host+"/x", http.NoBody)
		if got := (&pageTLS{port: row.port}).target(request); got != row.want {
			t.Errorf("%s at port %s: %s, want %s", row.host, row.port, got, row.want)
		}
	}
}

func replace(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func loopback(t *testing.T) net.Listener {
	t.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return lis
}
