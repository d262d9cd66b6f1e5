package control

import (
	"crypto/ed25519"
	"crypto/subtle"
	"crypto/tls"
	"errors"

	"google.golang.org/grpc/credentials"
)

// ErrWrongKey says that the other end does not hold this cluster's key.
var ErrWrongKey = errors.New("the other end holds another cluster key")

// ServerCredentials are those of an SFU's control port: mutual TLS 1.3 in which
// both ends prove that they hold the cluster key.
func (k ClusterKey) ServerCredentials() credentials.TransportCredentials {
	config := k.tlsConfig()
	config.ClientAuth = tls.RequireAnyClientCert // VerifyConnection judges it
	return credentials.NewTLS(config)
}

// ClientCredentials are those of an edge that calls a control port.
func (k ClusterKey) ClientCredentials() credentials.TransportCredentials {
	config := k.tlsConfig()
	// Names and dates say nothing here: the pinned public key, which VerifyConnection
	// compares, is the whole identity. Nodes have no host names of their own.
	config.InsecureSkipVerify = true
	return credentials.NewTLS(config)
}

// tlsConfig is what both ends have in common. TLS proves that the other end holds the
// private key of the certificate it shows; pinning its public key proves
// that this private key is the cluster's.
func (k ClusterKey) tlsConfig() *tls.Config {
	keys := k.keys()
	config := &tls.Config{
		MinVersion: tls.VersionTLS13,
		// A resumed session would skip the proof for as long as a ticket lives.
		SessionTicketsDisabled: true,
		VerifyConnection:       func(state tls.ConnectionState) error { return verifyPinned(state, keys.public) },
	}
	if !k.IsZero() {
		config.Certificates = []tls.Certificate{keys.identity}
	}
	return config
}

// verifyPinned refuses every peer whose leaf certificate has another public key
// than the cluster's.
func verifyPinned(state tls.ConnectionState, want ed25519.PublicKey) error {
	if len(want) == 0 || len(state.PeerCertificates) == 0 {
		return ErrWrongKey
	}
	got, ok := state.PeerCertificates[0].PublicKey.(ed25519.PublicKey)
	if !ok || subtle.ConstantTimeCompare(got, want) != 1 {
		return ErrWrongKey
	}
	return nil
}
