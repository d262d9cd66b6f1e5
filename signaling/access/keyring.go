package access

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"unicode/utf8"
)

// errBadKeys contains no secret, and neither do the errors that wrap it.
var errBadKeys = errors.New("bad API keys")

const (
	markLabel = "holdfast resume token's API key v1"
	markBytes = 12
)

// minSecretCharacters is meant for hexadecimal secrets.
const minSecretCharacters = 32

// Keyring hides its secrets in a closure, because fmt prints unexported fields.
type Keyring struct {
	current func() keySet
	replace func(keySet)
}

type keySet struct {
	secrets map[string][]byte
	keys    []string
}

// ParseKeyring reads "key:secret,key2:secret2". The pairs may also stand on lines of their own.
func ParseKeyring(text string) (*Keyring, error) {
	keys, err := parseKeys(text)
	if err != nil {
		return nil, err
	}
	var set atomic.Pointer[keySet]
	set.Store(&keys)
	return &Keyring{
		current: func() keySet { return *set.Load() },
		replace: func(next keySet) { set.Store(&next) },
	}, nil
}

// Replace sets other keys. The tokens of keys that are gone end. After an error nothing has changed.
func (k *Keyring) Replace(text string) error {
	keys, err := parseKeys(text)
	if err == nil {
		k.replace(keys)
	}
	return err
}

func parseKeys(text string) (keySet, error) {
	set := keySet{secrets: make(map[string][]byte)}
	for i, entry := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == '\n' }) {
		entry = strings.TrimSpace(entry)
		if entry == "" {
			continue
		}
		key, secret, ok := strings.Cut(entry, ":")
		key, secret = strings.TrimSpace(key), strings.TrimSpace(secret)
		if !ok || key == "" {
			return keySet{}, fmt.Errorf("%w: entry %d is not key:secret", errBadKeys, i+1)
		}
		if n := utf8.RuneCountInString(secret); n < minSecretCharacters {
			return keySet{}, fmt.Errorf("%w: the secret of key %q has %d characters, want at least %d", errBadKeys, key, n, minSecretCharacters)
		}
		if _, twice := set.secrets[key]; twice {
			return keySet{}, fmt.Errorf("%w: key %q is given twice", errBadKeys, key)
		}
		set.secrets[key] = []byte(secret)
		set.keys = append(set.keys, key)
	}
	if len(set.keys) == 0 {
		return keySet{}, fmt.Errorf("%w: there are none", errBadKeys)
	}
	return set, nil
}

func (k *Keyring) secret(key string) (secret []byte, ok bool) {
	secret, ok = k.current().secrets[key]
	return secret, ok
}

// Mark names a key together with its secret, so that resume tokens end when either changes. It is empty for an
// unknown key.
func (k *Keyring) Mark(key string) string {
	secret, ok := k.secret(key)
	if !ok {
		return ""
	}
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(markLabel))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:markBytes])
}

// Keys returns the keys in the order in which they were given.
func (k *Keyring) Keys() []string { return slices.Clone(k.current().keys) }

func (k *Keyring) String() string { return fmt.Sprintf("API keys %v (secrets hidden)", k.Keys()) }

// GoString hides the secrets from %#v.
func (k *Keyring) GoString() string { return k.String() }

// LogValue hides the secrets from logs.
func (k *Keyring) LogValue() slog.Value { return slog.StringValue(k.String()) }
