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

// Signed too, so that no later form is read as this one.
const resumePrefix = "hfr2."

const resumeLabel = "holdfast resume hmac v2"

// WithdrawnResume is for sessions of a withdrawn API key. Open refuses it with ErrUnknownKey.
const WithdrawnResume = "hfr0.withdrawn.0"

// The longest room, identity, name and metadata fit, at six bytes a character.
const maxResumeBytes = 32 << 10

// ResumeLife bounds one resume token.
const ResumeLife = 24 * time.Hour

// Session is what a resume token is bound to.
type Session struct {
	// Key let the person in; Seal sets Mark.
	Key  string `json:"key,omitempty"`
	Mark string `json:"mark,omitempty"`
	// Until, in Unix seconds, ends the right to resume, however often tokens are renewed.
	Until int64 `json:"until,omitempty"`
	// Began is the join, in Unix milliseconds of the store's clock.
	Began int64 `json:"began,omitempty"`

	Room         ring.RoomID `json:"room"`
	Peer         string      `json:"peer"`
	Identity     string      `json:"identity"`
	Name         string      `json:"name,omitempty"`
	Metadata     string      `json:"metadata,omitempty"`
	CanPublish   bool        `json:"pub,omitempty"`
	Sources      Sources     `json:"src,omitempty"` // these are as in Grant
	CanSubscribe bool        `json:"sub,omitempty"`
	CanChat      bool        `json:"chat,omitempty"`
	Hidden       bool        `json:"hidden,omitempty"`
	RoomCreate   bool        `json:"create,omitempty"`
	CanRename    bool        `json:"rename,omitempty"`
	CanWatch     bool        `json:"watch,omitempty"`
	CanMessage   bool        `json:"message,omitempty"`
	CanModerate  bool        `json:"mod,omitempty"` // the room; by the token, or handed on
	ExpectedSize int         `json:"size,omitempty"`

	MaxParticipants int `json:"max,omitempty"`
	// Epoch is the room's. Unlike a client's word, it may be believed.
	Epoch   uint64 `json:"epoch,omitempty"`
	Expires int64  `json:"exp"` // Unix seconds
}

// Seal makes a token for ResumeLife or until s.Until. Its key is derived from the secret of s.Key: any signaling node
// can open it, and no media node make one.
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

// Open returns the session, ErrForged, ErrExpired, or ErrUnknownKey if the API key is gone or has another secret.
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
	var s Session // only the key's name is believed before the signature is checked
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
