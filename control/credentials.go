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

// ErrWrongKey says that the other end does not hold this cluster's key.
var ErrWrongKey = errors.New("the other end holds another cluster key")

// ErrOtherCluster says that the other end's cluster has the key and another name.
var ErrOtherCluster = errors.New("the other end belongs to another cluster")

// ServerCredentials are mutual TLS 1.3 in which both ends prove that they hold the cluster key.
func (k ClusterKey) ServerCredentials() credentials.TransportCredentials {
	config := k.tlsConfig()
	config.ClientAuth = tls.RequireAnyClientCert // VerifyConnection judges it
	return credentials.NewTLS(config)
}

// ClientCredentials are those of a signaling node.
func (k ClusterKey) ClientCredentials() credentials.TransportCredentials {
	config := k.tlsConfig()
	// The pinned public key is the whole identity. Nodes have no host names.
	config.InsecureSkipVerify = true
	return credentials.NewTLS(config)
}

// TLS proves that the other end holds the private key of its certificate; pinning the public key proves that this is
// the cluster's. Both are looked up at each handshake, so that Replace counts for the next.
func (k ClusterKey) tlsConfig() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		// A resumed session would skip the proof.
		SessionTicketsDisabled: true,
		VerifyConnection:       func(state tls.ConnectionState) error { return verifyPinned(state, k.keys()) },
		GetCertificate:         func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return k.certificate() },
		GetClientCertificate:   func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return k.certificate() },
	}
}

func (k ClusterKey) certificate() (*tls.Certificate, error) {
	keys := k.keys()
	if len(keys) == 0 {
		return nil, ErrWrongKey
	}
	return &keys[0].identity, nil
}

// verifyPinned refuses leaf certificates with another public key or cluster.
func verifyPinned(state tls.ConnectionState, ours []derivedKeys) error {
	if len(ours) == 0 || len(state.PeerCertificates) == 0 {
		return ErrWrongKey
	}
	got, ok := state.PeerCertificates[0].PublicKey.(ed25519.PublicKey)
	if !ok || !slices.ContainsFunc(ours, func(d derivedKeys) bool { return subtle.ConstantTimeCompare(got, d.public) == 1 }) {
		return ErrWrongKey
	}
	own, err := x509.ParseCertificate(ours[0].identity.Certificate[0])
	if err != nil {
		return err
	}
	if theirs := state.PeerCertificates[0].Subject.CommonName; theirs != own.Subject.CommonName {
		return fmt.Errorf("%w: %q, and this is %q", ErrOtherCluster, theirs, own.Subject.CommonName)
	}
	return nil
}
