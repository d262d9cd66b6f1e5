package access

import (
	"errors"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/holdfast-rtc/holdfast/ring"
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
		"A\u200dd\u200ca":                  "Ada",
		"র\u200d\u09cdয":                   "র\u200d\u09cdয",
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

// names are texts and their normal forms; an empty form is of a text that is no name.
func names() map[string]string {
	return map[string]string{
		"lobby":              "lobby",
		"{a}{b}":             "{a}{b}",
		"a/b?c#d%":           "a/b?c#d%",
		"会議\u3000室":          "会議 室",
		" a\u00a0\u2003 b  ": "a b",
		"a\u3164b":           "a b",
		"👩\u200d👩\u200d👧":    "👩\u200d👩\u200d👧",
		"🏳\ufe0f\u200d🌈":     "🏳\ufe0f\u200d🌈",
		"👩🏽\u200d💻 team":     "👩🏽\u200d💻 team",
		"می\u200cخواهم":      "می\u200cخواهم",
		"र\u094d\u200dय":     "र\u094d\u200dय",
		"র\u200d\u09cdয":     "র\u200d\u09cdয",
		"می\u200c\u200dخ":    "می\u200dخ",
		// What nobody sees does not tell two names apart.
		"\u200d👩\u200d":        "👩",
		"می\u200c خ":           "می خ",
		"a\u200dd\u200ca":      "ada",
		"zoe\u0308\u200d":      "zoe\u0308",
		"е\u200dда":            "еда",
		"会\u200d議":             "会議",
		"":                     "",
		" \u3000\u2800\u200d ": "",
		"a\u202eb":             "",
		"a\u200bb":             "",
		"a\nb":                 "",
		"a\u2028b":             "",
		"a\xffb":               "",
		"a\ufffdb":             "",
	}
}

func TestNamesHaveOneForm(t *testing.T) {
	keys := keyring(t)
	for text, want := range names() {
		room, err := CheckRoom(text)
		if string(room) != want || (err == nil) != (want != "") || err != nil && !errors.Is(err, ErrBadRoom) {
			t.Errorf("CheckRoom(%+q) = %+q, %v, want %+q", text, room, err, want)
		}
		if got := Identity(text); want != "" && got != want {
			t.Errorf("Identity(%+q) = %+q, want %+q", text, got, want)
		}
		if !utf8.ValidString(text) || text == "" {
			continue // JSON has no other bytes, and a token may lack an identity.
		}
		grant := Everything(text, ring.RoomID(text))
		token, err := keys.Mint("", grant, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		got, err := keys.Verify(token)
		if want == "" {
			if !errors.Is(err, ErrUnfit) {
				t.Errorf("a token of %+q: %v", text, err)
			}
			continue
		}
		if err != nil || got.Identity != want || string(got.Room) != want {
			t.Errorf("a token of %+q is of %+q in %+q, %v", text, got.Identity, got.Room, err)
		}
		for _, asked := range []string{"", text, want} {
			if room, err := got.ForRoom(asked); err != nil || string(room) != want {
				t.Errorf("a token of %+q opens %+q as %+q, %v", text, asked, room, err)
			}
		}
	}
}

// TestARoomThatIsNoneOpensNoOther: a token whose room has no name is for no room, and not for all of them.
func TestARoomThatIsNoneOpensNoOther(t *testing.T) {
	for _, room := range []ring.RoomID{" ", "\u3000", "\u200d", "a\u202eb"} {
		grant := Operator("root")
		grant.Room, grant.RoomJoin = room, true
		keys := keyring(t)
		token, err := keys.Mint("", grant, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		got, err := keys.Verify(token)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := got.ForRoom("lobby"); !errors.Is(err, ErrBadRoom) || got.ForCluster() == nil || got.ForClusterAdmin() == nil || got.ForRoomAdmin("lobby") == nil {
			t.Errorf("a token for %+q opens something: %v", room, err)
		}
	}
}

func FuzzCheckRoom(f *testing.F) {
	for text := range names() {
		f.Add(text)
	}
	f.Add(strings.Repeat("é", 129))
	f.Fuzz(func(t *testing.T, name string) {
		room, err := CheckRoom(name)
		if err != nil {
			if !errors.Is(err, ErrBadRoom) || room != "" {
				t.Fatalf("CheckRoom(%+q) = %+q, %v", name, room, err)
			}
			return
		}
		text := string(room)
		if text == "" || !utf8.ValidString(text) || len(text) > len(name) || text != strings.TrimSpace(text) || strings.Contains(text, "  ") || Identity(name) != text {
			t.Fatalf("CheckRoom(%+q) = %+q", name, text)
		}
		if again, err := CheckRoom(text); err != nil || again != room {
			t.Fatalf("CheckRoom(%+q) = %+q, and again %+q, %v", name, text, again, err)
		}
		for _, r := range text {
			if !unicode.IsPrint(r) && r != zeroWidthJoiner && r != zeroWidthNonJoiner {
				t.Fatalf("CheckRoom(%+q) = %+q contains %U", name, text, r)
			}
		}
		if plain := strings.NewReplacer("\u200c", "", "\u200d", "").Replace(text); plain == "" {
			t.Fatalf("CheckRoom(%+q) = %+q, of which nothing is seen", name, text)
		}
	})
}
