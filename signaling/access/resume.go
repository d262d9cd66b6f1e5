package access

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/holdfast-rtc/holdfast/ring"
)

// resumePrefix begins every resume token. It is signed with the rest, so that
// a later form can never be read as this one.
const resumePrefix = "hfr1."

// maxResumeBytes fits the longest room, identity, name and metadata that an access
// token may bring, if JSON needs six bytes for each of theirs.
const maxResumeBytes = 32 << 10

// ResumeLife is how long a resume token is good at most. It is renewed at every resume,
// but never past Session.Until.
const ResumeLife = 24 * time.Hour

// Session is what a resume token is bound to.
type Session struct {
	// Key is the API key that let the person in, and Mark the keyring's mark of it.
	Key  string `json:"key,omitempty"`
	Mark string `json:"mark,omitempty"`
	// Until ends the right to resume, however often the token is renewed: the access token's end and a grace. Unix seconds.
	Until int64 `json:"until,omitempty"`
	// Began is when the person joined, by the store's clock. Unix milliseconds.
	Began int64 `json:"began,omitempty"`

	Room         ring.RoomID `json:"room"`
	Peer         string      `json:"peer"`
	Identity     string      `json:"identity"`
	Name         string      `json:"name,omitempty"`
	Metadata     string      `json:"metadata,omitempty"`
	CanPublish   bool        `json:"pub,omitempty"`
	Sources      Sources     `json:"src,omitempty"` // as of Grant, as are the next four
	CanSubscribe bool        `json:"sub,omitempty"`
	CanChat      bool        `json:"chat,omitempty"`
	Hidden       bool        `json:"hidden,omitempty"`
	RoomCreate   bool        `json:"create,omitempty"`
	ExpectedSize int         `json:"size,omitempty"` // as of Grant
	// Epoch is the room's epoch when the token was made: a fence that a new edge may
	// believe, as it may not believe what a client says.
	Epoch   uint64 `json:"epoch,omitempty"`
	Expires int64  `json:"exp"` // Unix seconds; Seal sets it
}

// Resumer seals and opens resume tokens. Every signaling node of a cluster
// derives the same key, so each can open what another sealed.
type Resumer struct {
	sign func(text string) []byte // a closure, so that nothing prints the key
}

// NewResumer makes a Resumer of the cluster's resume key.
func NewResumer(key []byte) *Resumer {
	key = append([]byte(nil), key...)
	return &Resumer{sign: func(text string) []byte {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(text)) // hash.Hash.Write never returns an error
		return mac.Sum(nil)
	}}
}

// Seal makes the token of a session, good from now for ResumeLife, or until s.Until if that is sooner.
func (r *Resumer) Seal(s Session) (string, error) {
	s.Expires = min(time.Now().Add(ResumeLife).Unix(), s.Until)
	payload, err := json.Marshal(s)
	if err != nil {
		return "", fmt.Errorf("seal session of peer %s: %w", s.Peer, err)
	}
	text := resumePrefix + base64.RawURLEncoding.EncodeToString(payload)
	return text + "." + base64.RawURLEncoding.EncodeToString(r.sign(text)), nil
}

// Open returns the session of a token. Its error is ErrForged or ErrExpired.
func (r *Resumer) Open(token string) (Session, error) {
	cut := strings.LastIndexByte(token, '.')
	if len(token) > maxResumeBytes || cut < len(resumePrefix) || !strings.HasPrefix(token, resumePrefix) {
		return Session{}, fmt.Errorf("%w: it is not a resume token", ErrForged)
	}
	mac, err := base64.RawURLEncoding.Strict().DecodeString(token[cut+1:])
	if err != nil || !hmac.Equal(mac, r.sign(token[:cut])) {
		return Session{}, fmt.Errorf("%w: its signature does not match", ErrForged)
	}
	payload, err := base64.RawURLEncoding.Strict().DecodeString(token[len(resumePrefix):cut])
	if err != nil {
		return Session{}, fmt.Errorf("%w: %w", ErrForged, err)
	}
	var s Session
	if err := json.Unmarshal(payload, &s); err != nil {
		return Session{}, fmt.Errorf("%w: %w", ErrForged, err)
	}
	if s.Room == "" || s.Peer == "" || s.Identity == "" {
		return Session{}, fmt.Errorf("%w: it names no room, peer or identity", ErrForged)
	}
	if time.Now().After(time.Unix(s.Expires, 0)) {
		return Session{}, ErrExpired
	}
	return s, nil
}

// String hides the key.
func (r *Resumer) String() string { return "resume key (hidden)" }

// GoString hides the key from %#v.
func (r *Resumer) GoString() string { return r.String() }

// LogValue hides the key from structured logs.
func (r *Resumer) LogValue() slog.Value { return slog.StringValue(r.String()) }
