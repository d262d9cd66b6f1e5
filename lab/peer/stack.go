package peer

import (
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"fmt"

	"github.com/pion/dtls/v3/pkg/crypto/fingerprint"
	"github.com/pion/dtls/v3/pkg/crypto/selfsign"
)

// Stack is what the peers of one process share: the kind of video that they send, and a certificate.
type Stack struct {
	video       Video
	certificate tls.Certificate
	fingerprint string // "sha-256 AA:BB..."
}

// NewStack makes the stack for peers that send this kind of video.
func NewStack(video Video) (*Stack, error) {
	certificate, err := selfsign.GenerateSelfSigned()
	if err != nil {
		return nil, fmt.Errorf("make a certificate: %w", err)
	}
	parsed, err := x509.ParseCertificate(certificate.Certificate[0])
	if err != nil {
		return nil, fmt.Errorf("read own certificate: %w", err)
	}
	hash, err := fingerprint.Fingerprint(parsed, crypto.SHA256)
	if err != nil {
		return nil, fmt.Errorf("hash own certificate: %w", err)
	}
	return &Stack{video: video, certificate: certificate, fingerprint: "sha-256 " + hash}, nil
}

// simulcast reports whether peers send and report as browsers do: three layers, and transport-wide feedback.
func (s *Stack) simulcast() bool { return s.video == VideoSimulcast }
