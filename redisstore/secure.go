package redisstore

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
)

// The names of PEM files in the query of a rediss URL.
const (
	queryAuthority   = "tls_ca"
	queryCertificate = "tls_cert"
	queryKey         = "tls_key"
)

var (
	errNotSecure   = errors.New("tls_ca, tls_cert and tls_key need rediss")
	errHalfPair    = errors.New("tls_cert and tls_key are given together")
	errNoAuthority = errors.New("the file of tls_ca holds no certificate")
)

type tlsFiles struct{ authority, certificate, key string }

// takeTLSFiles reads the names of PEM files and removes them from query.
func takeTLSFiles(query url.Values) tlsFiles {
	p := tlsFiles{authority: query.Get(queryAuthority), certificate: query.Get(queryCertificate), key: query.Get(queryKey)}
	for _, name := range []string{queryAuthority, queryCertificate, queryKey} {
		query.Del(name)
	}
	return p
}

func (p tlsFiles) apply(config *tls.Config) error {
	if p == (tlsFiles{}) {
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
		return errHalfPair
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
