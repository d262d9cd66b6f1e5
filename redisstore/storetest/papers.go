package storetest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// papers are a test's authority and one certificate by it, for servers and clients alike. nil means no TLS.
type papers struct {
	authority, certificate, key string // files
	config                      *tls.Config
}

// They are for loopback, and last for an hour.
func newPapers(t testing.TB) *papers {
	t.Helper()
	dir := t.TempDir()
	p := &papers{authority: filepath.Join(dir, "ca.pem"), certificate: filepath.Join(dir, "cert.pem"), key: filepath.Join(dir, "key.pem")}
	fatal := func(err error) {
		if err != nil {
			t.Helper()
			t.Fatalf("make certificates: %v", err)
		}
	}
	authorityKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	fatal(err)
	now := time.Now()
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "holdfast test authority"}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	authorityDER, err := x509.CreateCertificate(rand.Reader, authority, authority, authorityKey.Public(), authorityKey)
	fatal(err)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	fatal(err)
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "redis"}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	leafDER, err := x509.CreateCertificate(rand.Reader, leaf, authority, key.Public(), authorityKey)
	fatal(err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	fatal(err)
	for file, block := range map[string]*pem.Block{
		p.authority:   {Type: "CERTIFICATE", Bytes: authorityDER},
		p.certificate: {Type: "CERTIFICATE", Bytes: leafDER},
		p.key:         {Type: "PRIVATE KEY", Bytes: keyDER},
	} {
		fatal(os.WriteFile(file, pem.EncodeToMemory(block), 0o600))
	}
	parsed, err := x509.ParseCertificate(authorityDER)
	fatal(err)
	pool := x509.NewCertPool()
	pool.AddCert(parsed)
	p.config = &tls.Config{
		RootCAs: pool, MinVersion: tls.VersionTLS12,
		Certificates: []tls.Certificate{{Certificate: [][]byte{leafDER}, PrivateKey: key}},
	}
	return p
}

// tls is for clients.
func (p *papers) tls() *tls.Config {
	if p == nil {
		return nil
	}
	return p.config.Clone()
}

// listen is a part of redis.conf. With TLS nothing else is accepted, and clients need a certificate.
func (p *papers) listen(port string) string {
	if p == nil {
		return "port " + port + "\n"
	}
	return "port 0\ntls-port " + port + "\ntls-replication yes\n" +
		"tls-cert-file " + p.certificate + "\ntls-key-file " + p.key + "\ntls-ca-cert-file " + p.authority + "\n"
}

// url is a store's: kind is empty, "+sentinel" or "+cluster".
func (p *papers) url(kind, rest string) string {
	if p == nil {
		return "redis" + kind + "://" + rest
	}
	query := url.Values{"tls_ca": {p.authority}, "tls_cert": {p.certificate}, "tls_key": {p.key}}
	return "rediss" + kind + "://" + rest + "?" + query.Encode()
}
