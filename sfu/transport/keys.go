package transport

import (
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/pion/srtp/v3"
)

// Keys are one end's SRTP master keys and salts of a keyed connection, for both directions (AES-128-GCM, RFC 7714). The
// zero value has none. Keys never print themselves.
type Keys struct {
	// secret returns what this end seals with, then what it opens with: a key and a salt each. It is a function because
	// fmt prints what an unexported field points to.
	secret func() [keysBytes]byte
}

const (
	masterKeyBytes  = 16
	masterSaltBytes = 12
	directionBytes  = masterKeyBytes + masterSaltBytes
	keysBytes       = 2 * directionBytes
)

var errKeysLength = errors.New("the keys of a connection are of the wrong length")

// NewKeys makes fresh keys for the two ends of one connection. Keys must not serve a second connection, because its
// packets would repeat the nonces of the first.
func NewKeys() (ours, theirs Keys) {
	var near, far [keysBytes]byte
	_, _ = rand.Read(near[:]) // crypto/rand never fails.
	copy(far[:], near[directionBytes:])
	copy(far[directionBytes:], near[:directionBytes])
	return hidden(near), hidden(far)
}

// ParseKeys reads what Bytes returned at the node that made the keys.
func ParseKeys(b []byte) (Keys, error) {
	if len(b) != keysBytes {
		return Keys{}, fmt.Errorf("%w: %d bytes", errKeysLength, len(b))
	}
	return hidden([keysBytes]byte(b)), nil
}

// keysOf returns the zero value for another profile than AES-128-GCM.
func keysOf(config srtp.Config) Keys {
	if config.Profile != srtp.ProtectionProfileAeadAes128Gcm {
		return Keys{}
	}
	k := &config.Keys
	return hidden([keysBytes]byte(slices.Concat(k.LocalMasterKey, k.LocalMasterSalt, k.RemoteMasterKey, k.RemoteMasterSalt)))
}

func hidden(secret [keysBytes]byte) Keys {
	return Keys{secret: func() [keysBytes]byte { return secret }}
}

// IsZero reports whether there are no keys.
func (k Keys) IsZero() bool { return k.secret == nil }

// Bytes returns the keys in the form in which control carries them: encrypted, and to their end only. It returns nil for
// the zero value.
func (k Keys) Bytes() []byte {
	if k.IsZero() {
		return nil
	}
	b := k.secret()
	return b[:]
}

func (k Keys) srtp() srtp.Config {
	b := k.Bytes()
	local, remote := b[:directionBytes], b[directionBytes:]
	return srtp.Config{Profile: srtp.ProtectionProfileAeadAes128Gcm, Keys: srtp.SessionKeys{
		LocalMasterKey: local[:masterKeyBytes], LocalMasterSalt: local[masterKeyBytes:],
		RemoteMasterKey: remote[:masterKeyBytes], RemoteMasterSalt: remote[masterKeyBytes:],
	}}
}

func (k Keys) String() string {
	if k.IsZero() {
		return "keys (none)"
	}
	return "keys (hidden)"
}

// GoString hides the keys.
func (k Keys) GoString() string { return k.String() }

// LogValue hides the keys.
func (k Keys) LogValue() slog.Value { return slog.StringValue(k.String()) }
