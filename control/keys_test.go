package control

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

const testKeyText = "0123456789abcdef0123456789abcdef"

func mustKey(t testing.TB, text string) ClusterKey {
	t.Helper()
	key, err := ParseClusterKey(text)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// The derived keys are part of the protocol: nodes of two releases must agree on
// them. The values were computed with an HKDF of our own in Python.
func TestDerivedKeysAreStable(t *testing.T) {
	key := mustKey(t, testKeyText)
	for _, c := range []struct{ name, want, got string }{
		{"gossip", "82eb6670e15449946745ec3185be447682fc526995d5e310100236bd774b7017", hex.EncodeToString(key.GossipKeys()[0])},
		{"identity", "2ae57d96de568ef475008fe953420a7d0934eb134ff5366a6158bc963d21eee9", hex.EncodeToString(key.identitySeed(t))},
	} {
		if c.got != c.want {
			t.Errorf("%s key = %s, want %s", c.name, c.got, c.want)
		}
	}
}

func TestIdentityIsDeterministic(t *testing.T) {
	a, b := mustKey(t, testKeyText), mustKey(t, " "+testKeyText+"\n")
	if !bytes.Equal(a.derived()[0].identity.Certificate[0], b.derived()[0].identity.Certificate[0]) {
		t.Fatal("two nodes with one key made different certificates")
	}
	if other := mustKey(t, testKeyText+"x"); bytes.Equal(a.derived()[0].public, other.derived()[0].public) {
		t.Fatal("two keys gave one identity")
	}
}

func TestShortKeyIsRefusedWithoutShowingIt(t *testing.T) {
	const short = "only-31-characters-of-secret-xx"
	_, err := ParseClusterKey(short + "   ")
	if !errors.Is(err, errShortKey) || strings.Contains(err.Error(), short) {
		t.Fatalf("ParseClusterKey = %v, want ErrShortKey without the text", err)
	}
}

func TestKeyNeverShows(t *testing.T) {
	key := mustKey(t, testKeyText)
	holder := struct{ key ClusterKey }{key} // fmt cannot call methods on an unexported field
	var out bytes.Buffer
	slog.New(slog.NewTextHandler(&out, nil)).Info("x", "key", key, "holder", holder)
	slog.New(slog.NewJSONHandler(&out, nil)).Info("x", "key", key, "holder", holder)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x", "%q", "%d"} {
		fmt.Fprintf(&out, verb, key)
		fmt.Fprintf(&out, verb, holder)
	}
	for _, secret := range []string{
		testKeyText, hex.EncodeToString([]byte(testKeyText)),
		string(key.GossipKeys()[0]), hex.EncodeToString(key.GossipKeys()[0]), fmt.Sprintf("%d", key.GossipKeys()[0]),
	} {
		if strings.Contains(out.String(), secret) {
			t.Fatalf("printed key shows %q:\n%s", secret, out.String())
		}
	}
}

func (k ClusterKey) identitySeed(t *testing.T) []byte {
	t.Helper()
	private, ok := k.derived()[0].identity.PrivateKey.(interface{ Seed() []byte })
	if !ok {
		t.Fatal("the identity is not an ed25519 key")
	}
	return private.Seed()
}
