package control

import (
	"crypto/ed25519"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"

	"google.golang.org/grpc/credentials"
)

var errWrongKey = errors.New("the other end holds another cluster key")

var errOtherCluster = errors.New("the other end belongs to another cluster")

func (k ClusterKey) serverCredentials() credentials.TransportCredentials {
	config := k.tlsConfig()
	// VerifyConnection checks the certificate.
	config.ClientAuth = tls.RequireAnyClientCert
	return credentials.NewTLS(config)
}

func (k ClusterKey) clientCredentials() credentials.TransportCredentials {
	config := k.tlsConfig()
	// The pinned public key is the identity, so no chain of certificates is checked.
	config.InsecureSkipVerify = true
	return credentials.NewTLS(config)
}

// tlsConfig makes both ends prove that they have the cluster's key: TLS proves the private key, and the pinned public
// key is the cluster's. Each handshake looks both up, so that Replace takes effect.
func (k ClusterKey) tlsConfig() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		// A resumed session would leave the proof out.
		SessionTicketsDisabled: true,
		VerifyConnection:       func(state tls.ConnectionState) error { return verifyPinned(state, k.keys()) },
		GetCertificate:         func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return k.certificate() },
		GetClientCertificate:   func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return k.certificate() },
	}
}

func (k ClusterKey) certificate() (*tls.Certificate, error) {
	keys := k.keys()
	if len(keys) == 0 {
		return nil, errWrongKey
	}
	return &keys[0].identity, nil
}

func verifyPinned(state tls.ConnectionState, ours []derivedKeys) error {
	if len(ours) == 0 || len(state.PeerCertificates) == 0 {
		return errWrongKey
	}
	got, ok := state.PeerCertificates[0].PublicKey.(ed25519.PublicKey)
	if !ok || !slices.ContainsFunc(ours, func(d derivedKeys) bool { return subtle.ConstantTimeCompare(got, d.public) == 1 }) {
		return errWrongKey
	}
	own, err := x509.ParseCertificate(ours[0].identity.Certificate[0])
	if err != nil {
		return err
	}
	if theirs := state.PeerCertificates[0].Subject.CommonName; theirs != own.Subject.CommonName {
		return fmt.Errorf("%w: %q, and this is %q", errOtherCluster, theirs, own.Subject.CommonName)
	}
	return nil
}
