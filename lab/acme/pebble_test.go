// Package acme runs the binary against Pebble, a certificate authority for tests. It is a module of its own, so that
// Holdfast itself does not depend on one.
package acme

import (
	"crypto/x509"
	"log"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/letsencrypt/pebble/v2/ca"
	"github.com/letsencrypt/pebble/v2/db"
	"github.com/letsencrypt/pebble/v2/va"
	"github.com/letsencrypt/pebble/v2/wfe"
	"github.com/miekg/dns"
)

// pebble is a certificate authority that checks every name at this host.
type pebble struct {
	directory string
	trusts    string // file for SSL_CERT_FILE: whoever asks trusts its https
	roots     *x509.CertPool
}

// newPebble checks names at these ports, and certifies them for so many seconds.
func newPebble(t *testing.T, httpPort, tlsPort int, seconds uint64) *pebble {
	t.Helper()
	t.Setenv("PEBBLE_VA_NOSLEEP", "1")
	said := log.New(testLog{t}, "pebble ", 0)
	store := db.NewMemoryStore()
	issuer := ca.New(said, store, "", "ecdsa", 0, 1, map[string]ca.Profile{"default": {Description: "short", ValidityPeriod: seconds}})
	checker := va.New(said, httpPort, tlsPort, true, resolver(t), store)
	front := wfe.New(said, store, checker, issuer, []string{"pebble.test"}, true, false, 1, 1)
	server := httptest.NewTLSServer(front.Handler())
	t.Cleanup(server.Close)
	p := &pebble{directory: server.URL + wfe.DirectoryPath, roots: x509.NewCertPool(), trusts: filepath.Join(t.TempDir(), "authority.pem")}
	p.roots.AppendCertsFromPEM(issuer.GetRootCert(0).PEM())
	if err := os.WriteFile(p.trusts, pemOf(server.Certificate()), 0o600); err != nil {
		t.Fatal(err)
	}
	return p
}

// resolver says of every name that it is this host's.
func resolver(t *testing.T) (address string) {
	t.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &dns.Server{Listener: lis, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, asked *dns.Msg) {
		answer := new(dns.Msg).SetReply(asked)
		if q := asked.Question[0]; q.Qtype == dns.TypeA {
			answer.Answer = []dns.RR{&dns.A{Hdr: dns.RR_Header{Name: q.Name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 1}, A: net.IPv4(127, 0, 0, 1)}}
		}
		_ = w.WriteMsg(answer) // who does not hear it asks again
	})}
	go func() { _ = server.ActivateAndServe() }()
	t.Cleanup(func() { _ = server.Shutdown() })
	return lis.Addr().String()
}
