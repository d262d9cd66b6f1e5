package access

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-rtc/holdfast/ring"
)

// resumePrefix is signed, too.
const resumePrefix = "hfr2."

const resumeLabel = "holdfast resume hmac v2"

// WithdrawnResume is a token for which Open returns ErrUnknownKey.
const WithdrawnResume = "hfr0.withdrawn.0"

// maxResumeBytes is enough for the longest fields, at six bytes a character.
const maxResumeBytes = 48 << 10

// ResumeLife bounds one resume token.
const ResumeLife = 24 * time.Hour

// Session is what a resume token contains.
type Session struct {
	// Seal sets Mark.
	Key  string `json:"key,omitempty"`
	Mark string `json:"mark,omitempty"`
	// Until, in Unix seconds, ends renewals.
	Until int64 `json:"until,omitempty"`
	// Began is in Unix milliseconds of the store's clock.
	Began int64 `json:"began,omitempty"`

	Room     ring.RoomID `json:"room"`
	Peer     string      `json:"peer"`
	Identity string      `json:"identity"`
	Name     string      `json:"name,omitempty"`
	Metadata string      `json:"metadata,omitempty"`
	// Attributes are as in Grant.
	Attributes map[string]string `json:"attributes,omitempty"`
	CanPublish bool              `json:"pub,omitempty"`
	// Sources has the meaning of Grant.Sources.
	Sources      Sources `json:"src,omitempty"`
	CanSubscribe bool    `json:"sub,omitempty"`
	CanChat      bool    `json:"chat,omitempty"`
	Hidden       bool    `json:"hidden,omitempty"`
	RoomCreate   bool    `json:"create,omitempty"`
	CanRename    bool    `json:"rename,omitempty"`
	CanWatch     bool    `json:"watch,omitempty"`
	CanMessage   bool    `json:"message,omitempty"`
	// CanModerate is from the token, or was handed on by a moderator.
	CanModerate  bool `json:"mod,omitempty"`
	ExpectedSize int  `json:"size,omitempty"`

	MaxParticipants int `json:"max,omitempty"`
	// Check marks a session of a connection test, which ends at Until with all that it made.
	Check bool `json:"check,omitempty"`
	// Epoch can be trusted, because a signaling node signed it; an epoch that a client names cannot.
	Epoch uint64 `json:"epoch,omitempty"`
	// Expires is in Unix seconds.
	Expires int64 `json:"exp"`
}

// Seal makes a token that is good until ResumeLife has passed, or until s.Until. Only signaling nodes have the
// secret.
func (k *Keyring) Seal(s Session) (string, error) {
	secret, ok := k.secret(s.Key)
	if !ok {
		return "", fmt.Errorf("seal session of peer %s with key %q: %w", s.Peer, s.Key, ErrUnknownKey)
	}
	s.Mark = k.Mark(s.Key)
	s.Expires = min(time.Now().Add(ResumeLife).Unix(), s.Until)
	payload, err := json.Marshal(s)
	if err != nil {
		return "", fmt.Errorf("seal session of peer %s: %w", s.Peer, err)
	}
	text := resumePrefix + base64.RawURLEncoding.EncodeToString(payload)
	mac, err := resumeMAC(secret, text)
	return text + "." + base64.RawURLEncoding.EncodeToString(mac), err
}

func resumeMAC(secret []byte, text string) ([]byte, error) {
	key, err := hkdf.Key(sha256.New, secret, nil, resumeLabel, sha256.Size)
	if err != nil {
		return nil, fmt.Errorf("derive the resume key: %w", err)
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(text))
	return mac.Sum(nil), nil
}

// Open returns ErrForged, ErrExpired, or ErrUnknownKey if the API key is gone or has another secret.
func (k *Keyring) Open(token string) (Session, error) {
	cut := strings.LastIndexByte(token, '.')
	if len(token) > maxResumeBytes || cut < len(resumePrefix) || !strings.HasPrefix(token, "hfr") {
		return Session{}, fmt.Errorf("%w: it is not a resume token", ErrForged)
	}
	if !strings.HasPrefix(token, resumePrefix) {
		return Session{}, fmt.Errorf("%w: another version of Holdfast made it", ErrUnknownKey)
	}
	if strings.ContainsAny(token, lineBreaks) {
		return Session{}, fmt.Errorf("%w: there is a line break in it", ErrForged)
	}
	payload, err := base64.RawURLEncoding.Strict().DecodeString(token[len(resumePrefix):cut])
	if err != nil {
		return Session{}, fmt.Errorf("%w: %w", ErrForged, err)
	}
	// Before the signature is checked, only Key may be used.
	var s Session
	if err := json.Unmarshal(payload, &s); err != nil {
		return Session{}, fmt.Errorf("%w: %w", ErrForged, err)
	}
	if s.Key == "" {
		return Session{}, fmt.Errorf("%w: it names no API key", ErrForged)
	}
	secret, ok := k.secret(s.Key)
	if !ok || s.Mark != k.Mark(s.Key) {
		return Session{}, fmt.Errorf("%w: %.60q", ErrUnknownKey, s.Key)
	}
	want, err := resumeMAC(secret, token[:cut])
	if err != nil {
		return Session{}, err
	}
	mac, err := base64.RawURLEncoding.Strict().DecodeString(token[cut+1:])
	if err != nil || !hmac.Equal(mac, want) {
		return Session{}, fmt.Errorf("%w: its signature does not match", ErrForged)
	}
	if s.Room == "" || s.Peer == "" || s.Identity == "" {
		return Session{}, fmt.Errorf("%w: it names no room, peer or identity", ErrForged)
	}
	if time.Now().After(time.Unix(s.Expires, 0)) {
		return Session{}, ErrExpired
	}
	return s, nil
}
