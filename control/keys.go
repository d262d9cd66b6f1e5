package control

import (
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/holdfast-rtc/holdfast/pin"
)

var errShortKey = errors.New("cluster key is too short")

// minKeyCharacters is 128 bits in hexadecimal.
const minKeyCharacters = 32

// The labels of the keys that are derived from the cluster key. Nodes whose labels differ cannot talk to each other.
const (
	labelSalt     = "holdfast cluster key v1"
	labelGossip   = "holdfast gossip aes-256 v1"
	labelIdentity = "holdfast control ed25519 v1"
	labelRelay    = "holdfast turn credentials v1"
	derivedBytes  = 32
)

const maxKeys = 2

// ClusterKey is a cluster's secret, or two of them during a rotation: the first is used, both are accepted. Copies
// share what Replace changes. The zero value refuses all connections. The fields are closures, because fmt prints
// unexported fields.
type ClusterKey struct {
	derived func() []derivedKeys
	replace func(text string) error
}

type derivedKeys struct {
	gossip   []byte
	relay    []byte
	identity tls.Certificate
	public   ed25519.PublicKey
}

// ParseClusterKey reads a key a line. No error contains a key.
func ParseClusterKey(text string) (ClusterKey, error) { return parseFor(text, pin.DefaultCluster) }

// In returns the key for one cluster. It opens no other cluster.
func (k ClusterKey) In(cluster string) (ClusterKey, error) {
	var of []derivedKeys
	for _, d := range k.keys() {
		private, ok := d.identity.PrivateKey.(ed25519.PrivateKey)
		if !ok {
			return ClusterKey{}, errors.New("the control identity is not an ed25519 key")
		}
		var err error
		if d.identity, d.public, err = identityOf(private, cluster); err != nil {
			return ClusterKey{}, err
		}
		of = append(of, d)
	}
	return holding(of, cluster), nil
}

// Replace changes the keys for new connections. After an error nothing has changed.
func (k ClusterKey) Replace(text string) error {
	if k.IsZero() {
		return errors.New("there is no key to replace")
	}
	return k.replace(text)
}

func parseFor(text, cluster string) (ClusterKey, error) {
	keys, err := derive(text, cluster)
	if err != nil {
		return ClusterKey{}, err
	}
	return holding(keys, cluster), nil
}

func holding(keys []derivedKeys, cluster string) ClusterKey {
	var current atomic.Pointer[[]derivedKeys]
	current.Store(&keys)
	return ClusterKey{
		derived: func() []derivedKeys { return *current.Load() },
		replace: func(text string) error {
			next, err := derive(text, cluster)
			if err == nil {
				current.Store(&next)
			}
			return err
		},
	}
}

func derive(text, cluster string) ([]derivedKeys, error) {
	var keys []derivedKeys
	for line := range strings.Lines(strings.TrimSpace(text) + "\n") {
		line = strings.TrimSpace(line)
		if line == "" && len(keys) > 0 {
			continue
		}
		if n := utf8.RuneCountInString(line); n < minKeyCharacters {
			return nil, fmt.Errorf("%w: %d characters, want at least %d", errShortKey, n, minKeyCharacters)
		}
		d, err := deriveOne(line, cluster)
		if err != nil {
			return nil, err
		}
		keys = append(keys, d)
	}
	if len(keys) > maxKeys {
		return nil, fmt.Errorf("%d cluster keys are given, want %d at most: the one that is used, and the one that comes or goes", len(keys), maxKeys)
	}
	return keys, nil
}

func deriveOne(text, cluster string) (d derivedKeys, err error) {
	root, err := hkdf.Extract(sha256.New, []byte(text), []byte(labelSalt))
	if err != nil {
		return d, fmt.Errorf("extract the cluster key: %w", err)
	}
	var seed []byte
	for _, want := range []struct {
		label string
		to    *[]byte
	}{{labelGossip, &d.gossip}, {labelRelay, &d.relay}, {labelIdentity, &seed}} {
		if *want.to, err = hkdf.Expand(sha256.New, root, want.label, derivedBytes); err != nil {
			return d, fmt.Errorf("derive %q: %w", want.label, err)
		}
	}
	d.identity, d.public, err = identityOf(ed25519.NewKeyFromSeed(seed), cluster)
	return d, err
}

func identityOf(private ed25519.PrivateKey, cluster string) (tls.Certificate, ed25519.PublicKey, error) {
	public, ok := private.Public().(ed25519.PublicKey)
	if !ok {
		return tls.Certificate{}, nil, errors.New("the control identity is not an ed25519 key")
	}
	// Only the key in the certificate is verified. An expiry would stop the cluster.
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: cluster},
		NotBefore:             time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC),
		NotAfter:              time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC),
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true,
	}
	raw, err := x509.CreateCertificate(nil, template, template, public, private)
	if err != nil {
		return tls.Certificate{}, nil, fmt.Errorf("sign the control certificate: %w", err)
	}
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: private}, public, nil
}

// IsZero reports whether there is no key.
func (k ClusterKey) IsZero() bool { return k.derived == nil }

// GossipKeys are keys of AES-256. The first one encrypts.
func (k ClusterKey) GossipKeys() [][]byte {
	var keys [][]byte
	for _, d := range k.keys() {
		keys = append(keys, slices.Clone(d.gossip))
	}
	return keys
}

// RelaySecrets sign TURN credentials. The first one is used.
func (k ClusterKey) RelaySecrets() [][]byte {
	var secrets [][]byte
	for _, d := range k.keys() {
		secrets = append(secrets, slices.Clone(d.relay))
	}
	return secrets
}

// Marks name the keys in public, with 8 hexadecimal digits each.
func (k ClusterKey) Marks() []string {
	var marks []string
	for _, d := range k.keys() {
		sum := sha256.Sum256(d.public)
		marks = append(marks, hex.EncodeToString(sum[:4]))
	}
	return marks
}

func (k ClusterKey) String() string {
	if k.IsZero() {
		return "cluster key (none)"
	}
	return "cluster key (hidden)"
}

// GoString hides the key.
func (k ClusterKey) GoString() string { return k.String() }

// LogValue hides the key.
func (k ClusterKey) LogValue() slog.Value { return slog.StringValue(k.String()) }

func (k ClusterKey) keys() []derivedKeys {
	if k.derived == nil {
		return nil
	}
	return k.derived()
}
