package access

import (
	"errors"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestShownName(t *testing.T) {
	for name, want := range map[string]string{
		"Ada Lovelace":                     "Ada Lovelace",
		"  Ada\t\u00a0\n Lovelace ":        "Ada Lovelace",
		"Ada\u202egnp.exe":                 "Adagnp.exe", // right-to-left override
		"\u2066Ada\u2069\u200e":            "Ada",
		"A\u200bd\u2060a\ufeff":            "Ada",
		"Ada\x00\x1b[31m":                  "Ada[31m",
		"<b>Ada</b>":                       "<b>Ada</b>", // the page shows text as text
		"نازنین\u200cزهرا":                 "نازنین\u200cزهرا",
		"👩\u200d👩\u200d👧":                  "👩\u200d👩\u200d👧",
		"\u200d\u200cAda\u200d":            "Ada",
		"Zoë Zoe\u0308":                    "Zoë Zoe\u0308",
		"e" + strings.Repeat("\u0301", 50): "e" + strings.Repeat("\u0301", maxMarks),
		"\u0301\u0301Ada":                  "Ada",
		"a \u0301\u0301b":                  "a b",
		"\u3164\u2800":                     "",
		"\u202e\u200b \t":                  "",
		"a\xffb\ufffdc":                    "abc",
		"🏴\U000e0067\U000e007f":            "🏴",
	} {
		if got := ShownName(name); got != want {
			t.Errorf("ShownName(%+q) = %+q, want %+q", name, got, want)
		}
	}
}

func FuzzShownName(f *testing.F) {
	for _, name := range []string{"Ada \u202e\u200d", "e\u0301\u0301", "👩\u200d👩", "\xff\x00"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		got := ShownName(name)
		if !utf8.ValidString(got) || len(got) > len(name) || got != strings.TrimSpace(got) {
			t.Fatalf("ShownName(%+q) = %+q", name, got)
		}
		if again := ShownName(got); again != got {
			t.Fatalf("ShownName(%+q) = %+q, and again %+q", name, got, again)
		}
		for _, r := range got {
			if !unicode.IsPrint(r) && r != zeroWidthJoiner && r != zeroWidthNonJoiner {
				t.Fatalf("ShownName(%+q) = %+q contains %U", name, got, r)
			}
		}
	})
}

func FuzzCheckRoom(f *testing.F) {
	for _, name := range []string{"", "lobby", "{a}{b}", strings.Repeat("é", 129), "a\u202eb", "\xff"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		room, err := CheckRoom(name)
		if err != nil && (!errors.Is(err, ErrBadRoom) || room != "") || err == nil && (string(room) != name || name == "" || !utf8.ValidString(name)) {
			t.Fatalf("CheckRoom(%+q) = %+q, %v", name, room, err)
		}
	})
}
