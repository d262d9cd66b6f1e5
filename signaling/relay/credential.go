package relay

import (
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// CredentialLife is half a working day: a browser that cannot renew must not lose its call.
const CredentialLife = 4 * time.Hour

// Issuer makes TURN credentials (draft-uberti-behave-turn-rest-00): user name `expiry:session`, password its HMAC.
type Issuer struct {
	URLs []string
	// Secrets has the one in use first.
	Secrets func() [][]byte
	Life    time.Duration
}

// Server is for one session.
func (i *Issuer) Server(session string, now time.Time) wire.ICEServer {
	secret := i.Secrets()[0]
	username := strconv.FormatInt(now.Add(i.Life).Unix(), 10) + ":" + markOf(secret) + "." + session
	return wire.ICEServer{URLs: i.URLs, Username: username, Credential: password(secret, username)}
}

func password(secret []byte, username string) string {
	mac := hmac.New(sha1.New, secret) // HMAC needs no collision resistance
	mac.Write([]byte(username))
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// markOf tells secrets apart during a rotation.
func markOf(secret []byte) string {
	sum := sha256.Sum256(append([]byte("holdfast turn mark v1\x00"), secret...))
	return hex.EncodeToString(sum[:4])
}

// username proves nothing without its password.
type username struct {
	expires time.Time
	mark    string
	session string
}

const (
	maxUsernameBytes = 128
	maxExpiry        = 1 << 40 // seconds: time.Time compares wrongly beyond
)

func parseUsername(text string) (u username, ok bool) {
	if len(text) > maxUsernameBytes {
		return u, false
	}
	expiry, rest, found := strings.Cut(text, ":")
	seconds, err := strconv.ParseUint(expiry, 10, 64)
	if !found || err != nil || seconds > maxExpiry || expiry != strconv.FormatUint(seconds, 10) {
		return u, false
	}
	u.expires = time.Unix(int64(seconds), 0)
	u.mark, u.session, found = strings.Cut(rest, ".")
	if !found || u.session == "" || strings.ContainsFunc(u.session, func(r rune) bool { return r <= ' ' || r > '~' || r == ':' }) {
		return u, false
	}
	return u, true
}

// Servers may have none.
type Servers struct {
	Static  []wire.ICEServer // without an end
	Issuers []*Issuer
}

// For returns a session's servers and their life; 0: no end.
func (s Servers) For(session string, now time.Time) (servers []wire.ICEServer, life time.Duration) {
	servers = append(servers, s.Static...)
	for _, issuer := range s.Issuers {
		servers = append(servers, issuer.Server(session, now))
		if life == 0 || issuer.Life < life {
			life = issuer.Life
		}
	}
	return servers, life
}
