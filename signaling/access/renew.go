package access

import (
	"fmt"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// Renew returns a token for a client whose protocol has access tokens only, and no resume tokens: it has the grants of another token,
// and continues the session of resume, of which state says more. Verify refuses it, so that it prolongs nothing. It is empty if it would
// be too long to be read.
func (k *Keyring) Renew(token, resume, state string) (string, error) {
	c, err := k.parse(token)
	if err != nil {
		return "", err
	}
	if c.Resume == "" {
		c.Expired = c.ExpiresAt
	}
	c.Resume, c.State, c.ExpiresAt = resume, state, jwt.NewNumericDate(time.Now().Add(ResumeLife))
	renewed, err := k.sign(c)
	if len(renewed) > maxTokenBytes {
		return "", nil
	}
	return renewed, err
}

// Unfold returns the resume token of a token that Renew made, with its state, and the access token that it was made of, which may have
// expired. Another token has no resume token.
func (k *Keyring) Unfold(token string) (original, resume, state string, err error) {
	c, err := k.parse(token)
	if err != nil || c.Resume == "" {
		return token, "", "", err
	}
	resume, state = c.Resume, c.State
	c.Resume, c.State, c.ExpiresAt, c.Expired = "", "", c.Expired, nil
	original, err = k.sign(c)
	return original, resume, state, err
}

func (k *Keyring) sign(c *claims) (string, error) {
	secret, ok := k.secret(c.Issuer)
	if !ok {
		return "", fmt.Errorf("sign with key %q: %w", c.Issuer, ErrUnknownKey)
	}
	signed, err := jwt.NewWithClaims(jwt.SigningMethodHS256, c).SignedString(secret)
	if err != nil {
		return "", fmt.Errorf("sign a renewed token: %w", err)
	}
	return signed, nil
}
