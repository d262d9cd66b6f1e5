package node

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/acme"
	"golang.org/x/crypto/acme/autocert"

	"github.com/holdfast-rtc/holdfast/internal/backoff"
)

// authority gets certificates from a certificate authority, at the start and in the background, never while a client waits.
type authority struct {
	manager *autocert.Manager
	dir     string
	// names has the certificate of each host, and nil inside until the host is certified.
	names    map[string]*atomic.Pointer[tls.Certificate]
	stranger tls.Certificate
}

const (
	// authorityFirst is longer than the minute for which autocert remembers a failure. Authorities count failures by the hour.
	authorityFirst = 2 * time.Minute
	authorityMost  = 30 * time.Minute
	// renewalLook is how often renewed certificates are looked for.
	renewalLook = 5 * time.Second
)

var errNoCertificate = errors.New("the certificate authority has not certified this name yet")

func newAuthority(hosts []string, directory, dir string) (*authority, error) {
	a := &authority{dir: dir, names: make(map[string]*atomic.Pointer[tls.Certificate], len(hosts))}
	for _, host := range hosts {
		a.names[host] = &atomic.Pointer[tls.Certificate]{}
	}
	a.manager = &autocert.Manager{
		Prompt: autocert.AcceptTOS, // --acme-accept-terms was given
		Cache:  oneAsks{autocert.DirCache(dir), a},
		Client: &acme.Client{DirectoryURL: directory, UserAgent: "holdfast", HTTPClient: &http.Client{Timeout: time.Minute}},
		HostPolicy: func(_ context.Context, host string) error {
			// A request to another port than 80 names the port, too.
			if name, _, err := net.SplitHostPort(host); err == nil {
				host = name
			}
			if a.names[host] == nil {
				return fmt.Errorf("%s is not among --acme-host", host)
			}
			return nil
		},
	}
	var err error
	a.stranger, err = selfSigned()
	return a, err
}

// config also answers the authority's check at this port (TLS-ALPN-01, RFC 8737).
func (a *authority) config() *tls.Config {
	check := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{acme.ALPNProto}, GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		if a.names[hello.ServerName] == nil {
			return nil, fmt.Errorf("%s is not among --acme-host", hello.ServerName)
		}
		return a.manager.GetCertificate(hello)
	}}
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: a.get, GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		if slices.Equal(hello.SupportedProtos, check.NextProtos) {
			return check, nil
		}
		return nil, nil
	}}
}

// Without a name of ours, as in a balancer's health check by address, get serves an untrusted certificate. So a node is ready before its
// first certificate, and gets the check that leads to it.
func (a *authority) get(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	current := a.names[strings.ToLower(strings.TrimSuffix(hello.ServerName, "."))]
	if current == nil {
		return &a.stranger, nil
	}
	if cert := current.Load(); cert != nil {
		return cert, nil
	}
	return nil, errNoCertificate
}

// overHTTP answers the authority's check without TLS (HTTP-01) and leaves the rest to next.
func (a *authority) overHTTP(next http.Handler) http.Handler { return a.manager.HTTPHandler(next) }

// watch asks until each name has a certificate, and puts renewed ones in use. A request under way at ctx's end goes on: autocert cannot
// be stopped.
func (a *authority) watch(ctx context.Context, log *slog.Logger) error {
	var each sync.WaitGroup
	for host, current := range a.names {
		each.Go(func() { a.watchName(ctx, log.With("host", host), host, current) })
	}
	each.Wait()
	return nil
}

func (a *authority) watchName(ctx context.Context, log *slog.Logger, host string, current *atomic.Pointer[tls.Certificate]) {
	failures := backoff.Backoff{First: authorityFirst, Most: authorityMost}
	waits, late := false, false
	for {
		pause := renewalLook
		cert, err := a.ask(ctx, host)
		switch before := current.Load(); {
		case ctx.Err() != nil:
			return
		case errors.Is(err, errOtherAsks):
			if pause = askingRetry; !waits {
				log.Info("waiting for a certificate", "reason", err)
			}
			waits = true
		case err != nil:
			pause = failures.Next()
			log.Error("no certificate: does the name's DNS record lead here, and its port 443 to --listen, or port 80 to --redirect-listen?",
				"error", err, "again_in", pause)
		case before == nil || !bytes.Equal(before.Certificate[0], cert.Certificate[0]):
			current.Store(cert)
			failures.Reset()
			late = false
			log.Info("certificate in use", "until", cert.Leaf.NotAfter)
		case !late && unrenewed(cert.Leaf, time.Now()):
			late = true
			log.Error("the certificate authority has not renewed the certificate: can it still reach port 443 or 80 of this name?", "until", cert.Leaf.NotAfter)
		}
		if !backoff.Sleep(ctx, pause) {
			return
		}
	}
}

// unrenewed is past half of the last third, in which autocert tries to renew it.
func unrenewed(cert *x509.Certificate, now time.Time) bool {
	return cert.NotAfter.Sub(now) < cert.NotAfter.Sub(cert.NotBefore)/6
}

// ask returns the known or kept certificate, or has one made.
func (a *authority) ask(ctx context.Context, host string) (*tls.Certificate, error) {
	type answer struct {
		cert *tls.Certificate
		err  error
	}
	done := make(chan answer, 1)
	go func() {
		// All browsers take ECDSA.
		cert, err := a.manager.GetCertificate(&tls.ClientHelloInfo{ServerName: host, CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256}})
		done <- answer{cert, err}
	}()
	select {
	case got := <-done:
		return got.cert, got.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func selfSigned() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(10, 0, 0)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}
