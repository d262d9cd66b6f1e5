package peer

import (
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"sync"

	"github.com/pion/dtls/v3/pkg/crypto/fingerprint"
	"github.com/pion/dtls/v3/pkg/crypto/selfsign"

	"github.com/holdfast-rtc/holdfast/lab/portrait"
)

// Stack is what the peers of one process share.
type Stack struct {
	video       Video
	codec       portrait.Codec
	certificate tls.Certificate
	fingerprint string // "sha-256 AA:BB..."

	mu    sync.Mutex
	clips map[camera]portrait.Clip // guarded by mu; nobody modifies a clip
}

type camera struct {
	face int
	size portrait.Size
}

// NewStack makes a stack for one kind of video, in VP8.
func NewStack(video Video) (*Stack, error) { return NewStackOf(video, portrait.VP8) }

// NewStackOf makes a stack for one kind of video in one codec.
func NewStackOf(video Video, codec portrait.Codec) (*Stack, error) {
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
	return &Stack{video: video, codec: codec, certificate: certificate, fingerprint: "sha-256 " + hash, clips: make(map[camera]portrait.Clip)}, nil
}

// clip is read once: hundreds of people show the same faces.
func (s *Stack) clip(person int, size portrait.Size) (portrait.Clip, error) {
	shown := camera{person % portrait.Faces, size}
	s.mu.Lock()
	defer s.mu.Unlock()
	if clip := s.clips[shown]; clip != nil {
		return clip, nil
	}
	clip, err := portrait.Open(shown.face, s.codec, size)
	if err == nil {
		s.clips[shown] = clip
	}
	return clip, err
}

// simulcast also means transport-wide feedback, as browsers send it.
func (s *Stack) simulcast() bool { return s.video == VideoSimulcast }
