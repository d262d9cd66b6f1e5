package redisstore

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
)

// The query parameters of a URL with rediss that name files in PEM: the authorities that the servers'
// certificates are judged by instead of the system's, and the certificate and key that we show
// to servers that ask for one, as Redis does unless it is told not to.
const (
	queryAuthority   = "tls_ca"
	queryCertificate = "tls_cert"
	queryKey         = "tls_key"
)

var (
	errNotSecure   = errors.New("tls_ca, tls_cert and tls_key need rediss")
	errHalfShown   = errors.New("tls_cert and tls_key are given together")
	errNoAuthority = errors.New("the file of tls_ca holds no certificate")
)

// papers are the files that a URL names.
type papers struct{ authority, certificate, key string }

// takePapers moves the names of files out of a query.
func takePapers(query url.Values) papers {
	p := papers{authority: query.Get(queryAuthority), certificate: query.Get(queryCertificate), key: query.Get(queryKey)}
	for _, name := range []string{queryAuthority, queryCertificate, queryKey} {
		query.Del(name)
	}
	return p
}

// apply reads the files into config, which is nil where the URL asks for no TLS.
func (p papers) apply(config *tls.Config) error {
	if p == (papers{}) {
		return nil
	}
	if config == nil {
		return errNotSecure
	}
	if p.authority != "" {
		pem, err := os.ReadFile(p.authority)
		if err != nil {
			return fmt.Errorf("read tls_ca: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return errNoAuthority
		}
	}
	if (p.certificate == "") != (p.key == "") {
		return errHalfShown
	}
	if p.certificate != "" {
		pair, err := tls.LoadX509KeyPair(p.certificate, p.key)
		if err != nil {
			return fmt.Errorf("read tls_cert and tls_key: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return nil
}
