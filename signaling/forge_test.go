package signaling

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// TestAMediaNodeCannotForgePeople: Eve has a token of her own and everything that a media node has, and makes a
// resume token of Ada's with it. What signs them is not derived from the cluster's key.
func TestAMediaNodeCannotForgePeople(t *testing.T) {
	_, _, e := lobby(t)
	_, joined := e.join("lobby", "Eve")
	parts := strings.Split(joined.Resume, ".")
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil || len(parts) != 3 {
		t.Fatalf("her token is %s: %v", joined.Resume, err)
	}
	adas := strings.NewReplacer(`"identity":"eve"`, `"identity":"ada"`, string(joined.Peer), "p-0123456789abcdef").Replace(string(payload))
	text := parts[0] + "." + base64.RawURLEncoding.EncodeToString([]byte(adas))
	root, err := hkdf.Extract(sha256.New, []byte(clusterKey), []byte("holdfast cluster key v1"))
	if err != nil {
		t.Fatal(err)
	}
	for _, label := range []string{"holdfast resume hmac v1", "holdfast gossip aes-256 v1", "holdfast control ed25519 v1"} {
		key, err := hkdf.Expand(sha256.New, root, label, 32)
		if err != nil {
			t.Fatal(err)
		}
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(text))
		forged := text + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
		c := e.dial()
		c.say(&wire.Resume{Resume: forged, Attempt: 2})
		if fault := hear[*wire.Error](c); fault.Code != wire.CodeBadToken {
			t.Errorf("heard %+v", fault)
		}
		if code, _ := c.closed(); code != websocket.StatusPolicyViolation {
			t.Errorf("closed with %v", code)
		}
	}
}
