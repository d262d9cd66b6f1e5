package pin

import (
	"errors"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestEncodeGolden(t *testing.T) {
	p := Pin{Fence: Fence{Epoch: 1769000000000, Nonce: 0xabc}, Node: "sfu-1", Boot: "1769000000000-00000001", Control: "127.0.0.1:7001"}
	const want = "1|1769000000000|0000000000000abc|sfu-1|1769000000000-00000001|127.0.0.1:7001"
	if got := p.Encode(); got != want {
		t.Fatalf("Encode = %q, want %q", got, want)
	}
	back, err := Parse(want)
	if err != nil || back != p {
		t.Fatalf("Parse = %+v, %v, want %+v", back, err, p)
	}
}

func TestParseRefusesWhatIsNotCanonical(t *testing.T) {
	for _, text := range []string{
		"", "1", "1|0|0000000000000abc|n|b|c", "0|5|0000000000000abc|n|b|c", "02|5|0000000000000abc|n|b|c", "2", "2|\n", "2|5 |n", "70000|x", "-2|x", "1|5|abc|n|b|c", "1|05|0000000000000abc|n|b|c",
		"1|5|0000000000000abc||b|c", "1|5|0000000000000ABC|n|b|c", "1|5|0000000000000abc|n n|b|c", "1|5|0000000000000abc|n|b|c|d",
	} {
		if _, err := Parse(text); !errors.Is(err, ErrCorrupt) {
			t.Errorf("Parse(%q) = %v, want ErrCorrupt", text, err)
		}
	}
}

func TestPinOfALaterVersionIsNoDamage(t *testing.T) {
	for _, text := range []string{"2|5|0000000000000abc|n|b|c", "2|", "2|{\"epoch\":5}", "65535|x", "2|" + strings.Repeat("x", maxTextBytes)} {
		if _, err := Parse(text); !errors.Is(err, ErrLater) || errors.Is(err, ErrCorrupt) {
			t.Errorf("Parse(%.20q) = %v, want ErrLater", text, err)
		}
	}
}

func TestFenceIsATotalOrder(t *testing.T) {
	fence := rapid.Custom(func(t *rapid.T) Fence {
		return Fence{Epoch: rapid.Uint64Range(1, 4).Draw(t, "epoch"), Nonce: rapid.Uint64Range(0, 4).Draw(t, "nonce")}
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := fence.Draw(t, "a"), fence.Draw(t, "b"), fence.Draw(t, "c")
		if a.Compare(b) != -b.Compare(a) {
			t.Fatalf("%v and %v are ordered differently from both sides", a, b)
		}
		if (a.Compare(b) == 0) != (a == b) {
			t.Fatalf("%v and %v: equal order is not equal value", a, b)
		}
		if a.Less(b) && b.Less(c) && !a.Less(c) {
			t.Fatalf("%v < %v < %v is not transitive", a, b, c)
		}
	})
}

func TestBootIDsSortByAge(t *testing.T) {
	at := time.UnixMilli(1769000000000)
	if older, newer := NewBootID(at), NewBootID(at.Add(time.Millisecond)); !newer.Newer(older) || older.Newer(newer) {
		t.Fatalf("%q and %q do not sort by age", older, newer)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("1|1769000000000|0000000000000abc|sfu-1|1769000000000-00000001|127.0.0.1:7001")
	f.Add("2|5|0000000000000abc|n|b|c")
	f.Add("2|\x00")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := Parse(text)
		switch {
		case err == nil && p.Encode() != text:
			t.Fatalf("%q is encoded as %q", text, p.Encode())
		case err != nil && errors.Is(err, ErrCorrupt) == errors.Is(err, ErrLater):
			t.Fatalf("%q: %v is neither damage nor a later version, or both", text, err)
		case errors.Is(err, ErrLater) && strings.HasPrefix(text, textVersion+"|"):
			t.Fatalf("%q of our version: %v", text, err)
		}
	})
}
