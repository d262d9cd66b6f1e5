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

// endsSuffix marks a user name whose allocations end with it.
const endsSuffix = "!ends"

// Server is for one session. If that ends, so do its credential and all that it allocated; zero: it has no such end.
func (i *Issuer) Server(session string, ends, now time.Time) wire.ICEServer {
	secret := i.Secrets()[0]
	expires := now.Add(i.Life)
	if !ends.IsZero() {
		session += endsSuffix
		expires = earlier(expires, ends)
	}
	username := strconv.FormatInt(expires.Unix(), 10) + ":" + markOf(secret) + "." + session
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
	ends    bool // so do its allocations
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
	u.session, u.ends = strings.CutSuffix(u.session, endsSuffix)
	if !found || u.session == "" || strings.ContainsFunc(u.session, func(r rune) bool { return r <= ' ' || r > '~' || r == ':' }) {
		return u, false
	}
	return u, true
}

// user is whose allocation it is for Pion. With another credential of the same session nobody prolongs one that ends.
func (u username) user() string {
	if !u.ends {
		return u.session
	}
	return u.session + endsSuffix + strconv.FormatInt(u.expires.Unix(), 10)
}

// sessionOf is the reverse; ends is zero if the allocation has no end.
func sessionOf(user string) (session string, ends time.Time) {
	session, text, found := strings.Cut(user, endsSuffix)
	if seconds, err := strconv.ParseInt(text, 10, 64); found && err == nil {
		ends = time.Unix(seconds, 0)
	}
	return session, ends
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// Servers may have none.
type Servers struct {
	Static  []wire.ICEServer // without an end
	Issuers []*Issuer
}

// For returns a session's servers and their life; 0: no end. ends is as in Server.
func (s Servers) For(session string, ends, now time.Time) (servers []wire.ICEServer, life time.Duration) {
	servers = append(servers, s.Static...)
	for _, issuer := range s.Issuers {
		servers = append(servers, issuer.Server(session, ends, now))
		if life == 0 || issuer.Life < life {
			life = issuer.Life
		}
	}
	if life > 0 && !ends.IsZero() {
		life = min(life, max(ends.Sub(now), 0))
	}
	return servers, life
}
