package transport

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/pion/srtp/v3"
)

// TestKeysOfBothEndsFit: what the one seals the other opens, also when the keys have gone through control as bytes.
func TestKeysOfBothEndsFit(t *testing.T) {
	ours, made := NewKeys()
	theirs, err := ParseKeys(made.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	a, b := ours.srtp(), theirs.srtp()
	for name, way := range map[string][2]srtp.SessionKeys{"there": {a.Keys, b.Keys}, "back": {b.Keys, a.Keys}} {
		if !bytes.Equal(way[0].LocalMasterKey, way[1].RemoteMasterKey) || !bytes.Equal(way[0].LocalMasterSalt, way[1].RemoteMasterSalt) {
			t.Errorf("the keys do not fit on the way %s", name)
		}
	}
	if bytes.Equal(a.Keys.LocalMasterKey, a.Keys.RemoteMasterKey) || bytes.Equal(a.Keys.LocalMasterSalt, a.Keys.RemoteMasterSalt) {
		t.Error("both directions have one key, so that they share nonces")
	}
	if again, _ := NewKeys(); bytes.Equal(again.Bytes(), ours.Bytes()) {
		t.Error("two connections have one key")
	}
	for _, n := range []int{0, 1, keysBytes - 1, keysBytes + 1} {
		if k, err := ParseKeys(make([]byte, n)); err == nil || !k.IsZero() {
			t.Errorf("%d bytes are read as keys", n)
		}
	}
	if (Keys{}).Bytes() != nil {
		t.Error("no keys have bytes")
	}
}

// TestKeysNeverShow in logs, errors and JSON.
func TestKeysNeverShow(t *testing.T) {
	keys, _ := NewKeys()
	holder := struct{ keys Keys }{keys} // fmt cannot call methods on an unexported field.
	cfg := Config{Keys: keys}
	var out bytes.Buffer
	for _, log := range []*slog.Logger{slog.New(slog.NewTextHandler(&out, nil)), slog.New(slog.NewJSONHandler(&out, nil))} {
		log.Info("x", "keys", keys, "holder", holder, "config", cfg)
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x", "%q", "%d"} {
		fmt.Fprintf(&out, verb, keys)
		fmt.Fprintf(&out, verb, holder)
		fmt.Fprintf(&out, verb, cfg)
	}
	inJSON, err := json.Marshal(keys) //nolint:staticcheck // that JSON has nothing of them is what is tested
	if err != nil {
		t.Fatal(err)
	}
	out.Write(inJSON)
	_, err = ParseKeys(keys.Bytes()[1:])
	out.WriteString(err.Error())
	shown := strings.NewReplacer(", ", " ", ",", " ", "0x", "").Replace(strings.ToLower(out.String()))
	part := keys.Bytes()[:4]
	inHex, inNumbers := hex.EncodeToString(part), strings.Trim(fmt.Sprint(part), "[]") //nolint:staticcheck // fmt shows bytes so
	for _, secret := range []string{string(part), inHex, inNumbers, inHex[:2] + " " + inHex[2:4]} {
		if strings.Contains(shown, secret) {
			t.Fatalf("the keys show as %q in:\n%s", secret, out.String())
		}
	}
	if !strings.Contains(shown, "keys (hidden)") || (Keys{}).String() != "keys (none)" {
		t.Error("the keys do not say that they are hidden")
	}
}
