package access

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/holdfast-rtc/holdfast/ring"
)

// leeway is for clocks that differ.
const leeway = 30 * time.Second

// lineBreaks are refused, because encoding/base64 skips them, and a signed token would have many forms.
const lineBreaks = "\r\n"

// video is LiveKit's grant. A nil field was absent.
type video struct {
	Room       string `json:"room,omitempty"`
	RoomJoin   bool   `json:"roomJoin,omitempty"`
	RoomAdmin  bool   `json:"roomAdmin,omitempty"`
	RoomList   bool   `json:"roomList,omitempty"`
	RoomCreate bool   `json:"roomCreate,omitempty"`

	CanPublish        *bool    `json:"canPublish,omitempty"`
	CanPublishSources []string `json:"canPublishSources,omitempty"`
	CanSubscribe      *bool    `json:"canSubscribe,omitempty"`
	CanPublishData    *bool    `json:"canPublishData,omitempty"`
	Hidden            bool     `json:"hidden,omitempty"`
	ExpectedSize      integer  `json:"expectedSize,omitempty"`
	MaxParticipants   integer  `json:"maxParticipants,omitempty"`

	CanUpdateOwnMetadata bool `json:"canUpdateOwnMetadata,omitempty"`
	CanWatch             bool `json:"canWatch,omitempty"`
	CanMessage           bool `json:"canMessage,omitempty"`
	Check                bool `json:"check,omitempty"`
	ClusterAdmin         bool `json:"clusterAdmin,omitempty"`
}

// integer is a number that may be written 5, 5.0 or 5e0, because some libraries write every number as a float.
type integer int

// UnmarshalJSON returns an error that encoding/json completes with the claim's name.
func (i *integer) UnmarshalJSON(text []byte) error {
	n, err := strconv.ParseFloat(string(text), 64)
	if err != nil || n != math.Trunc(n) || math.Abs(n) > maxInteger {
		return &json.UnmarshalTypeError{Value: fmt.Sprintf("%.40s", text), Type: reflect.TypeFor[int]()}
	}
	*i = integer(n)
	return nil
}

// maxInteger is the largest integer that is exact in a float.
const maxInteger = 1 << 53

type claims struct {
	jwt.RegisteredClaims

	Name     string `json:"name,omitempty"`
	Metadata string `json:"metadata,omitempty"`
	// Attributes are LiveKit's, too.
	Attributes map[string]string `json:"attributes,omitempty"`
	Video      *video            `json:"video,omitempty"`
	// Resume, State and Expired are of a token that Renew made: a resume token, what belongs to it, and when the token expired that it was
	// made of.
	Resume  string           `json:"holdfastResume,omitempty"`
	State   string           `json:"holdfastState,omitempty"`
	Expired *jwt.NumericDate `json:"holdfastExpired,omitempty"`
}

// Mint makes an access token for ttl.
func Mint(key, secret string, g Grant, ttl time.Duration) (string, error) {
	now := time.Now()
	token := jwt.NewWithClaims(jwt.SigningMethodHS256, claims{
		RegisteredClaims: jwt.RegisteredClaims{
			Issuer: key, Subject: g.Identity,
			NotBefore: jwt.NewNumericDate(now), ExpiresAt: jwt.NewNumericDate(now.Add(ttl)),
		},
		Name: g.Name, Metadata: g.Metadata, Attributes: g.Attributes,
		Video: &video{
			Room: string(g.Room), RoomJoin: g.RoomJoin, RoomAdmin: g.RoomAdmin, RoomList: g.RoomList, RoomCreate: g.RoomCreate,
			CanPublish: &g.CanPublish, CanPublishSources: g.Sources.Names(), CanSubscribe: &g.CanSubscribe,
			CanPublishData: &g.CanPublishData, Hidden: g.Hidden, CanUpdateOwnMetadata: g.CanRename, CanWatch: g.CanWatch, CanMessage: g.CanMessage, ExpectedSize: integer(g.ExpectedSize),
			MaxParticipants: integer(g.MaxParticipants), Check: g.Check, ClusterAdmin: g.ClusterAdmin,
		},
	})
	signed, err := token.SignedString([]byte(secret))
	if err != nil {
		return "", fmt.Errorf("sign access token of %s: %w", g.Identity, err)
	}
	return signed, nil
}

// Mint uses the first key if key is empty.
func (k *Keyring) Mint(key string, g Grant, ttl time.Duration) (string, error) {
	if key == "" {
		key = k.current().keys[0]
	}
	secret, ok := k.secret(key)
	if !ok {
		return "", fmt.Errorf("mint token with key %q: %w", key, ErrUnknownKey)
	}
	return Mint(key, string(secret), g, ttl)
}

// Verify returns ErrMissing, ErrExpired, ErrForged, ErrUnknownKey or ErrUnfit. The error's text says why, for the log, and has no part of the
// token but the names of its API key and of its claims.
func (k *Keyring) Verify(token string) (Grant, error) {
	c, err := k.parse(token)
	if err != nil {
		return Grant{}, err
	}
	if c.Resume != "" {
		return Grant{}, fmt.Errorf("%w: it continues a session of a LiveKit client, and allows nothing else", ErrUnfit)
	}
	return c.grant()
}

// parse checks everything but what the claims allow.
func (k *Keyring) parse(token string) (*claims, error) {
	if token == "" {
		return nil, ErrMissing
	}
	if len(token) > maxTokenBytes {
		return nil, fmt.Errorf("%w: it has %d bytes, and at most %d are read; put less into its metadata and attributes", ErrUnfit, len(token), maxTokenBytes)
	}
	if strings.ContainsAny(token, lineBreaks) {
		return nil, fmt.Errorf("%w: there is a line break in it; give it in one line", ErrForged)
	}
	var c claims
	parsed, err := jwt.ParseWithClaims(token, &c, func(*jwt.Token) (any, error) {
		secret, ok := k.secret(c.Issuer)
		if !ok {
			return nil, ErrUnknownKey
		}
		return secret, nil
	},
		jwt.WithValidMethods([]string{jwt.SigningMethodHS256.Alg()}), jwt.WithExpirationRequired(),
		jwt.WithLeeway(leeway), jwt.WithStrictDecoding())
	switch {
	case errors.Is(err, ErrUnknownKey) && c.Issuer == "":
		return nil, fmt.Errorf("%w: the token names none (iss)", ErrUnknownKey)
	case errors.Is(err, ErrUnknownKey):
		return nil, fmt.Errorf("%w: %.60q", ErrUnknownKey, c.Issuer)
	case errors.Is(err, jwt.ErrTokenSignatureInvalid) && parsed.Method.Alg() != jwt.SigningMethodHS256.Alg():
		return nil, fmt.Errorf("%w: it is signed by %s, and must be by HS256", ErrForged, parsed.Method.Alg())
	case errors.Is(err, jwt.ErrTokenSignatureInvalid):
		return nil, fmt.Errorf("%w: it is not signed with the secret of API key %.60q, or was changed", ErrForged, c.Issuer)
	case errors.Is(err, jwt.ErrTokenExpired):
		return nil, ErrExpired
	case errors.Is(err, jwt.ErrTokenNotValidYet):
		return nil, fmt.Errorf("%w: it is not valid yet (nbf); are the clocks right?", ErrUnfit)
	case errors.Is(err, jwt.ErrTokenRequiredClaimMissing):
		return nil, fmt.Errorf("%w: it has no time at which it expires (exp)", ErrUnfit)
	case err != nil:
		if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			return nil, fmt.Errorf("%w: its %s is %s, and must be of type %s", ErrUnfit, wrong.Field, wrong.Value, wrong.Type)
		}
		return nil, fmt.Errorf("%w: %w", ErrForged, err)
	}
	return &c, nil
}

// grant reads the claims. Genuine claims may still exceed limits.
func (c *claims) grant() (Grant, error) {
	if len(c.Subject) > MaxIdentityBytes {
		return Grant{}, fmt.Errorf("%w: its identity (sub) has %d bytes, and at most %d are carried", ErrUnfit, len(c.Subject), MaxIdentityBytes)
	}
	if err := CheckDescription(c.Name, c.Metadata, c.Attributes); err != nil {
		return Grant{}, fmt.Errorf("%w: its %w", ErrUnfit, err)
	}
	identity, err := normal(c.Subject)
	if err != nil {
		return Grant{}, fmt.Errorf("%w: its identity (sub) contains %w", ErrUnfit, err)
	}
	if identity == "" && c.Subject != "" {
		return Grant{}, fmt.Errorf("%w: nothing can be seen of its identity (sub)", ErrUnfit)
	}
	g := Grant{Identity: identity, Name: c.Name, Metadata: c.Metadata, Attributes: c.Attributes, Key: c.Issuer, Expires: c.ExpiresAt.Time}
	if c.Video != nil {
		if err := c.Video.read(&g); err != nil {
			return Grant{}, err
		}
	}
	return g, nil
}

// SizeError says that something which is told of a person is too large.
type SizeError struct {
	What       string
	Bytes, Max int
}

func (e *SizeError) Error() string {
	verb := "has"
	if strings.HasSuffix(e.What, "s") {
		verb = "have"
	}
	return fmt.Sprintf("%s %s %d bytes, and at most %d are carried", e.What, verb, e.Bytes, e.Max)
}

// CheckDescription returns a *SizeError if the name, the metadata or the attributes of a person are too large to be told everybody.
func CheckDescription(name, metadata string, attributes map[string]string) error {
	together := 0
	for key, value := range attributes {
		together += len(key) + len(value)
	}
	for _, part := range []SizeError{{"name", len(name), maxNameBytes}, {"metadata", len(metadata), maxMetadataBytes}, {"attributes", together, maxAttributesBytes}} {
		if part.Bytes > part.Max {
			return &part
		}
	}
	return nil
}

// read fills in LiveKit's defaults, with one difference: a hidden person may neither publish nor chat, because that
// would be seen.
func (v *video) read(g *Grant) error {
	sources, err := ParseSources(v.CanPublishSources)
	if err != nil {
		return fmt.Errorf("%w: its canPublishSources has an %w", ErrUnfit, err)
	}
	none := sources == 0 && len(v.CanPublishSources) > 0
	// A name that no room can have stays: without a room the token would be for all of them.
	room, err := CheckRoom(v.Room)
	if err != nil {
		room = ring.RoomID(v.Room)
	}
	g.Room, g.RoomJoin, g.RoomAdmin, g.RoomList, g.RoomCreate = room, v.RoomJoin, v.RoomAdmin, v.RoomList, v.RoomCreate
	g.Check, g.ClusterAdmin = v.Check, v.ClusterAdmin
	g.Hidden, g.Sources, g.CanRename, g.CanWatch, g.CanMessage = v.Hidden, sources, v.CanUpdateOwnMetadata, v.CanWatch, v.CanMessage && !v.Hidden
	publish := orElse(v.CanPublish, !v.Hidden)
	g.CanPublish, g.CanSubscribe, g.CanPublishData = publish && !none, orElse(v.CanSubscribe, true), orElse(v.CanPublishData, publish)
	if g.Hidden && (g.CanPublish || g.CanPublishData) {
		return fmt.Errorf("%w: it is hidden, and canPublish or canPublishData of it is true: the others would see who is hidden", ErrUnfit)
	}
	// Without a room the claim would bind every room.
	if v.Room != "" {
		g.MaxParticipants = min(max(int(v.MaxParticipants), 0), maxMaxParticipants)
		g.ExpectedSize = min(max(int(v.ExpectedSize), 0), maxExpectedSize)
	}
	return nil
}

func orElse(said *bool, otherwise bool) bool {
	if said == nil {
		return otherwise
	}
	return *said
}
