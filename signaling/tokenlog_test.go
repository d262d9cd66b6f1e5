package signaling

import (
	"encoding/base64"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/loglimit"
	"github.com/holdfast-rtc/holdfast/internal/testkit"
	"github.com/holdfast-rtc/holdfast/signaling/access"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// TestWhyATokenIsRefusedIsLogged: whoever brings it hears one sentence, by the WebSocket and by HTTP, and the log says which of them it is and
// why, without the token.
func TestWhyATokenIsRefusedIsLogged(t *testing.T) {
	minted := func(key, secret string) string {
		token, err := access.Mint(key, secret, access.Everything("ada", "lobby"), time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	unsigned := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`)) + "." + base64.RawURLEncoding.EncodeToString([]byte(`{"iss":"`+apiKey+`"}`)) + "."
	said := &testkit.Log{}
	r := newRig(t)
	r.log = slog.New(slog.NewTextHandler(said, nil))
	r.prepare = func(s *Server) { s.tokenLogs = loglimit.New(1, 100) }
	e := r.signalingNode(nil)
	told := map[string]bool{}
	lines := 0
	for _, row := range []struct{ token, why string }{
		{"", "no token was given"},
		{minted(apiKey, "another secret of sufficient length"), "not signed with the secret of API key"},
		{minted("nobody", apiSecret), `API key is not known: \"nobody\"`},
		{minted("", apiSecret), "names none (iss)"},
		{unsigned, "signed by none, and must be by HS256"},
		{"secret-nonsense", "token is malformed"},
		{minted(apiKey, apiSecret) + "\n", "line break"},
	} {
		c := e.dial()
		c.say(&wire.Join{Token: row.token})
		fault := hear[*wire.Error](c)
		_, heard := c.closed()
		if fault.Code != wire.CodeBadToken || len(heard) > 0 {
			t.Fatalf("%s: %+v, %v", row.why, fault, heard)
		}
		told[fault.Message] = true
		ways := []string{"WebSocket"}
		if !strings.HasSuffix(row.token, "\n") { // which no header can have
			e.refusedAs(http.StatusUnauthorized, wire.CodeBadToken, http.MethodGet, "/api/v1/nodes", row.token, "")
			ways = append(ways, "HTTP API")
		}
		lines += len(ways)
		text := said.String()
		all := strings.Split(strings.TrimSpace(text), "\n")
		for i, way := range ways {
			if line := all[len(all)-len(ways)+i]; !strings.Contains(line, "level=WARN") || !strings.Contains(line, row.why) || !strings.Contains(line, way) || !strings.Contains(line, apiKey) {
				t.Errorf("%s, by the %s, is logged as %s", row.why, way, line)
			}
		}
		for part := range strings.SplitSeq(strings.TrimSpace(row.token), ".") {
			if len(part) > 10 && strings.Contains(text, part) {
				t.Errorf("%s: a part of the token is in the log:\n%s", row.why, text)
			}
		}
	}
	if len(told) != 1 {
		t.Errorf("clients hear %v, want one sentence for all", told)
	}
	if n := strings.Count(said.String(), "a token was refused"); n != lines {
		t.Errorf("%d lines for %d refusals", n, lines)
	}
}

// TestRefusedTokensFillNoLog: it says a few of them, and how many it did not say.
func TestRefusedTokensFillNoLog(t *testing.T) {
	said := &testkit.Log{}
	r := newRig(t)
	r.log = slog.New(slog.NewTextHandler(said, nil))
	e := r.signalingNode(nil)
	for range 4 * tokenLogBurst {
		e.refusedAs(http.StatusUnauthorized, wire.CodeBadToken, http.MethodGet, "/api/v1/nodes", "nonsense", "")
	}
	if n := strings.Count(said.String(), "a token was refused"); n < tokenLogBurst || n > 2*tokenLogBurst {
		t.Errorf("%d lines", n)
	}
}
