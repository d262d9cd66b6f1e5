package node

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/connlimit"
)

// tlsFlags are of the port that browsers connect to.
type tlsFlags struct {
	acmeFlags
	TLSCert        string `name:"tls-cert" placeholder:"FILE" help:"Speak https and wss at --listen, with this certificate chain, PEM. It is read again when it changes."`
	TLSKey         string `name:"tls-key" placeholder:"FILE" help:"Its key, PEM."`
	RedirectListen string `placeholder:"HOST:PORT" help:"host:port, such as :80, that sends browsers on to https at the port of --listen."`
}

func (f tlsFlags) checkTLS() error {
	var found []error
	if (f.TLSCert == "") != (f.TLSKey == "") {
		found = append(found, errors.New("--tls-cert: give it and --tls-key, or neither"))
	}
	if f.TLSCert != "" && len(f.ACMEHost) > 0 {
		found = append(found, errors.New("--acme-host: give either it or --tls-cert and --tls-key"))
	}
	found = append(found, f.checkACME())
	if f.RedirectListen != "" {
		found = append(found, CheckHostPort("redirect-listen", f.RedirectListen))
		if !f.secure() {
			found = append(found, errors.New("--redirect-listen: give --tls-cert and --tls-key or --acme-host, too: it leads to https"))
		}
	}
	return errors.Join(found...)
}

// secure says that the page's port has TLS.
func (f tlsFlags) secure() bool { return f.TLSCert != "" || len(f.ACMEHost) > 0 }

// supply keeps a port with certificates.
type supply interface {
	config() *tls.Config
	watch(ctx context.Context, log *slog.Logger) error
}

// pageTLS is the certificates of the page's port and the plain port that leads there. A nil one does nothing.
type pageTLS struct {
	certificates supply
	redirect     net.Listener
	// plain answers at redirect.
	plain http.Handler
	// port is where https is served.
	port string
}

// listenTLS returns nil without a certificate.
func (f tlsFlags) listenTLS(ctx context.Context, page net.Addr) (*pageTLS, error) {
	if !f.secure() {
		return nil, nil
	}
	p := &pageTLS{}
	_, p.port, _ = net.SplitHostPort(page.String())
	p.plain = http.HandlerFunc(p.toTLS)
	if len(f.ACMEHost) > 0 {
		made, err := f.newAuthority()
		if err != nil {
			return nil, err
		}
		if p.certificates = made; f.RedirectListen != "" {
			p.plain = made.overHTTP(p.plain)
		}
	} else {
		read, err := readCertificate("tls", f.TLSCert, f.TLSKey)
		if err != nil {
			return nil, err
		}
		p.certificates = read
	}
	if f.RedirectListen == "" {
		return p, nil
	}
	var listening net.ListenConfig
	var err error
	if p.redirect, err = listening.Listen(ctx, "tcp", f.RedirectListen); err != nil {
		return nil, fmt.Errorf("listen for browsers without TLS (--redirect-listen): %w", err)
	}
	return p, nil
}

// config is nil where the port is plain.
func (p *pageTLS) config() *tls.Config {
	if p == nil {
		return nil
	}
	return p.certificates.config()
}

func (p *pageTLS) close() {
	if p != nil && p.redirect != nil {
		_ = p.redirect.Close()
	}
}

func (p *pageTLS) watch(ctx context.Context, log *slog.Logger) error {
	if p == nil {
		return nil
	}
	return p.certificates.watch(ctx, log)
}

const (
	// redirectLimit bounds a whole request.
	redirectLimit       = 5 * time.Second
	redirectConns       = 1024
	redirectPerAddress  = 32
	redirectHeaderBytes = 8 << 10
)

// serveRedirect ends with ctx.
func (p *pageTLS) serveRedirect(ctx context.Context, log *slog.Logger) error {
	if p == nil || p.redirect == nil {
		return nil
	}
	server := &http.Server{
		Handler: p.plain, ReadTimeout: redirectLimit, WriteTimeout: redirectLimit,
		MaxHeaderBytes: redirectHeaderBytes, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	server.SetKeepAlivesEnabled(false)
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	limits := connlimit.Limits{Total: redirectConns, PerAddress: redirectPerAddress}
	if err := server.Serve(connlimit.Listen(p.redirect, connlimit.New(limits))); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve --redirect-listen: %w", err)
	}
	return nil
}

func (p *pageTLS) toTLS(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Location", p.target(r))
	w.WriteHeader(http.StatusPermanentRedirect)
}

func (p *pageTLS) target(r *http.Request) string {
	to := url.URL{Scheme: "https", Host: r.Host}
	if to.Host = to.Hostname(); p.port != "443" || strings.Contains(to.Host, ":") {
		to.Host = net.JoinHostPort(to.Host, p.port)
	}
	return to.String() + r.URL.RequestURI()
}
