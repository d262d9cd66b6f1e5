package access

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// Some libraries write every number as a float. What is no whole number is refused by the claim's name.
func TestIntegersOfClaims(t *testing.T) {
	const secret = "0123456789abcdef0123456789abcdef"
	keys, err := ParseKeyring("app:" + secret)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		claim, written string
		want           int
	}{
		{"maxParticipants", "5", 5},
		{"maxParticipants", "5.0", 5},
		{"maxParticipants", "1e1", 10},
		{"expectedSize", "2E2", 200},
		{"maxParticipants", "5.5", -1},
		{"maxParticipants", "1e400", -1},
		{"expectedSize", `"5"`, -1},
		{"canPublish", "5", -1},
	} {
		token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{
			"iss": "app", "sub": "ada", "exp": time.Now().Add(time.Hour).Unix(),
			"video": map[string]any{"room": "r", "roomJoin": true, row.claim: json.RawMessage(row.written)},
		}).SignedString([]byte(secret))
		if err != nil {
			t.Fatal(err)
		}
		grant, err := keys.Verify(token)
		if row.want < 0 {
			if !errors.Is(err, ErrUnfit) || !strings.Contains(err.Error(), row.claim) || !strings.Contains(err.Error(), "must be") {
				t.Errorf("%s %s: %v, want a refusal that names the claim", row.claim, row.written, err)
			}
			continue
		}
		if got := grant.MaxParticipants + grant.ExpectedSize; err != nil || got != row.want {
			t.Errorf("%s %s is read as %d (%v), want %d", row.claim, row.written, got, err, row.want)
		}
	}
}
