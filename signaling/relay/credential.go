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

// Issuer makes credentials that a TURN server checks with a shared secret (draft-uberti-behave-turn-rest-00): the user
// name is `expiry:session`, the password its HMAC. Ours and coturn's are alike.
type Issuer struct {
	URLs []string
	// Secrets gives the one in use first; the others are accepted.
	Secrets func() [][]byte
	Life    time.Duration
}

// Server is what a session is given.
func (i *Issuer) Server(session string, now time.Time) wire.ICEServer {
	secret := i.Secrets()[0]
	username := strconv.FormatInt(now.Add(i.Life).Unix(), 10) + ":" + markOf(secret) + "." + session
	return wire.ICEServer{URLs: i.URLs, Username: username, Credential: password(secret, username)}
}

func password(secret []byte, username string) string {
	mac := hmac.New(sha1.New, secret) // As the draft has it; HMAC does not need collision resistance.
	mac.Write([]byte(username))
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// markOf tells secrets apart: while one replaces the other, a server must know which made a password.
func markOf(secret []byte) string {
	sum := sha256.Sum256(append([]byte("holdfast turn mark v1\x00"), secret...))
	return hex.EncodeToString(sum[:4])
}

// username is a parsed one. It proves nothing: whoever sends it must know its password.
type username struct {
	expires time.Time
	mark    string
	session string
}

const (
	maxUsernameBytes = 128
	maxExpiry        = 1 << 40 // seconds: beyond it time.Time is not compared rightly
)

// parseUsername reads what a stranger sent.
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

// Servers are those that clients are given. The zero value has none.
type Servers struct {
	Static  []wire.ICEServer // the same for everybody, without an end
	Issuers []*Issuer
}

// For is what a session is given, and for how long; 0: for good.
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
