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
	// Secrets returns the secrets, with the one in use first.
	Secrets func() [][]byte
	Life    time.Duration
}

// endsSuffix marks a user name whose allocations end with it.
const endsSuffix = "!ends"

// Server returns a server with a credential for one session. ends is when the credential, and all that was allocated
// with it, ends with the session; zero if it does not.
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
	// SHA-1 suffices here, because an HMAC needs no collision resistance.
	mac := hmac.New(sha1.New, secret)
	mac.Write([]byte(username))
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// markOf names a secret, so that secrets can be told apart during a rotation.
func markOf(secret []byte) string {
	sum := sha256.Sum256(append([]byte("holdfast turn mark v1\x00"), secret...))
	return hex.EncodeToString(sum[:4])
}

// username is what a user name says. It proves nothing without its password.
type username struct {
	expires time.Time
	mark    string
	session string
	// ends says that the allocations end with the credential.
	ends bool
}

const (
	maxUsernameBytes = 128
	// maxExpiry is in seconds. Beyond it time.Time compares wrongly.
	maxExpiry = 1 << 40
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

// user is the owner of an allocation for Pion. It contains the end, so that an allocation that ends cannot be
// prolonged with another credential of the same session.
func (u username) user() string {
	if !u.ends {
		return u.session
	}
	return u.session + endsSuffix + strconv.FormatInt(u.expires.Unix(), 10)
}

// sessionOf is the reverse of user. ends is zero if the allocation has no end.
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

// Servers are the ICE servers that clients are told. There may be none.
type Servers struct {
	// Static are servers without an end.
	Static  []wire.ICEServer
	Issuers []*Issuer
}

// For returns the servers of a session and how long they are good; 0 is no end. ends has the meaning of Server.
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
