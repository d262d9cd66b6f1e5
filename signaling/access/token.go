package access

import (
	"errors"
	"fmt"
	"time"
	"unicode"

	"github.com/golang-jwt/jwt/v5"

	"github.com/holdfast-rtc/holdfast/ring"
)

// leeway is how far the clocks of a token server and of this node may differ.
const leeway = 30 * time.Second

// Grant is what a token allows, to whom. The zero value of CanPublish and
// CanSubscribe forbids; see Everything.
type Grant struct {
	Identity     string // the token's subject: who it is, stable for the application
	Name         string // shown to people
	Metadata     string // opaque, handed to the others in the room by the application's wish
	Room         ring.RoomID
	RoomJoin     bool
	RoomAdmin    bool
	CanPublish   bool
	CanSubscribe bool
	ExpectedSize int // how many people the room that the token names is expected to hold; 0 where it does not say
}

// maxExpectedSize bounds what a token may say of its room; more counts as so many.
const maxExpectedSize = 1000

// Everything is the usual grant: join the room, publish and subscribe.
func Everything(identity string, room ring.RoomID) Grant {
	return Grant{Identity: identity, Room: room, RoomJoin: true, CanPublish: true, CanSubscribe: true}
}

// video is the grant in LiveKit's form. Pointers tell what is absent from what
// is false.
type video struct {
	Room         string `json:"room,omitempty"`
	RoomJoin     bool   `json:"roomJoin,omitempty"`
	RoomAdmin    bool   `json:"roomAdmin,omitempty"`
	CanPublish   *bool  `json:"canPublish,omitempty"`
	CanSubscribe *bool  `json:"canSubscribe,omitempty"`
	ExpectedSize int    `json:"expectedSize,omitempty"`
}

// claims is the token's payload.
type claims struct {
	jwt.RegisteredClaims

	Name     string `json:"name,omitempty"`
	Metadata string `json:"metadata,omitempty"`
	Video    *video `json:"video,omitempty"`
}

// Mint makes an access token that is good from now for ttl.
func Mint(key, secret string, g Grant, ttl time.Duration) (string, error) {
	now := time.Now()
	token := jwt.NewWithClaims(jwt.SigningMethodHS256, claims{
		RegisteredClaims: jwt.RegisteredClaims{
			Issuer: key, Subject: g.Identity,
			NotBefore: jwt.NewNumericDate(now), ExpiresAt: jwt.NewNumericDate(now.Add(ttl)),
		},
		Name: g.Name, Metadata: g.Metadata,
		Video: &video{
			Room: string(g.Room), RoomJoin: g.RoomJoin, RoomAdmin: g.RoomAdmin,
			CanPublish: &g.CanPublish, CanSubscribe: &g.CanSubscribe, ExpectedSize: g.ExpectedSize,
		},
	})
	signed, err := token.SignedString([]byte(secret))
	if err != nil {
		return "", fmt.Errorf("sign access token of %s: %w", g.Identity, err)
	}
	return signed, nil
}

// Mint makes a token with one of the ring's keys: the first, if key is empty.
func (k *Keyring) Mint(key string, g Grant, ttl time.Duration) (string, error) {
	if key == "" {
		key = k.keys[0]
	}
	secret, ok := k.secret(key)
	if !ok {
		return "", fmt.Errorf("mint token with key %q: %w", key, ErrUnknownKey)
	}
	return Mint(key, string(secret), g, ttl)
}

// Verify returns what the token grants. Its error is one of ErrExpired,
// ErrForged, ErrUnknownKey and ErrUnfit; the grant itself (roomJoin, room) is judged by
// ForRoom and ForAdmin.
func (k *Keyring) Verify(token string) (Grant, error) {
	if len(token) > maxTokenBytes {
		return Grant{}, fmt.Errorf("%w: it has %d bytes, and at most %d are read; put less into its metadata and attributes", ErrUnfit, len(token), maxTokenBytes)
	}
	var c claims
	_, err := jwt.ParseWithClaims(token, &c, func(*jwt.Token) (any, error) {
		secret, ok := k.secret(c.Issuer)
		if !ok {
			return nil, ErrUnknownKey
		}
		return secret, nil
	},
		jwt.WithValidMethods([]string{jwt.SigningMethodHS256.Alg()}), jwt.WithExpirationRequired(),
		jwt.WithLeeway(leeway), jwt.WithStrictDecoding())
	switch {
	case errors.Is(err, ErrUnknownKey):
		return Grant{}, fmt.Errorf("%w: %.60q", ErrUnknownKey, c.Issuer)
	case errors.Is(err, jwt.ErrTokenSignatureInvalid):
		return Grant{}, fmt.Errorf("%w: %w", ErrForged, err)
	case errors.Is(err, jwt.ErrTokenExpired):
		return Grant{}, ErrExpired
	case errors.Is(err, jwt.ErrTokenNotValidYet):
		return Grant{}, fmt.Errorf("%w: it is not valid yet (nbf); are the clocks right?", ErrUnfit)
	case errors.Is(err, jwt.ErrTokenRequiredClaimMissing):
		return Grant{}, fmt.Errorf("%w: it has no time at which it expires (exp)", ErrUnfit)
	case err != nil:
		return Grant{}, fmt.Errorf("%w: %w", ErrForged, err)
	}
	return c.grant()
}

// grant reads genuine claims. They may still be more than the cluster carries.
func (c *claims) grant() (Grant, error) {
	for _, part := range []struct {
		name, text string
		most       int
	}{{"identity (sub)", c.Subject, maxIdentityBytes}, {"name", c.Name, maxNameBytes}, {"metadata", c.Metadata, maxMetadataBytes}} {
		if len(part.text) > part.most {
			return Grant{}, fmt.Errorf("%w: its %s has %d bytes, and at most %d are carried", ErrUnfit, part.name, len(part.text), part.most)
		}
	}
	// An identity is compared, logged and shown to operators as it is, so it may hide nothing. A name is only shown: see ShownName.
	for _, r := range c.Subject {
		if !unicode.IsPrint(r) || r == unicode.ReplacementChar {
			return Grant{}, fmt.Errorf("%w: its identity (sub) contains %U, which is not printable", ErrUnfit, r)
		}
	}
	g := Grant{Identity: c.Subject, Name: c.Name, Metadata: c.Metadata}
	if v := c.Video; v != nil {
		g.Room, g.RoomJoin, g.RoomAdmin = ring.RoomID(v.Room), v.RoomJoin, v.RoomAdmin
		g.CanPublish = v.CanPublish == nil || *v.CanPublish
		g.CanSubscribe = v.CanSubscribe == nil || *v.CanSubscribe
		if v.Room != "" { // A size for whatever room its holder makes up would be a reservation without bounds.
			g.ExpectedSize = min(max(v.ExpectedSize, 0), maxExpectedSize)
		}
	}
	return g, nil
}

// ForRoom judges whether g lets its holder into a room: the one it names, or
// the one asked for when it names none. asked may be empty.
func (g Grant) ForRoom(asked string) (ring.RoomID, error) {
	if g.Identity == "" {
		return "", ErrNoIdentity
	}
	if !g.RoomJoin {
		return "", ErrNotJoin
	}
	if g.Room != "" && asked != "" && string(g.Room) != asked {
		return "", ErrOtherRoom
	}
	if g.Room != "" {
		asked = string(g.Room)
	}
	return CheckRoom(asked)
}

// ForAdmin judges whether g opens the operator's API.
func (g Grant) ForAdmin() error {
	if !g.RoomAdmin {
		return ErrNotAdmin
	}
	return nil
}
