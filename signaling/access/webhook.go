package access

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// bodyClaims are LiveKit's for a webhook.
type bodyClaims struct {
	jwt.RegisteredClaims

	SHA256 string `json:"sha256"`
}

// SignBody returns a token of the named key, or the first one, that vouches for the body of a webhook: its claim sha256 is the standard
// base64 of the body's SHA-256. The token allows nothing.
func (k *Keyring) SignBody(key string, body []byte, life time.Duration) (string, error) {
	if key == "" {
		key = k.current().keys[0]
	}
	secret, ok := k.secret(key)
	if !ok {
		return "", fmt.Errorf("sign with key %q: %w", key, ErrUnknownKey)
	}
	now, sum := time.Now(), sha256.Sum256(body)
	token := jwt.NewWithClaims(jwt.SigningMethodHS256, bodyClaims{
		RegisteredClaims: jwt.RegisteredClaims{Issuer: key, NotBefore: jwt.NewNumericDate(now.Add(-leeway)), ExpiresAt: jwt.NewNumericDate(now.Add(life))},
		SHA256:           base64.StdEncoding.EncodeToString(sum[:]),
	})
	signed, err := token.SignedString(secret)
	if err != nil {
		return "", fmt.Errorf("sign a webhook: %w", err)
	}
	return signed, nil
}
