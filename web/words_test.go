package web_test

import (
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-rtc/holdfast/web"
)

// Strings and templates of the page; comments are cut first.
var (
	comment = regexp.MustCompile(`(?s)/\*.*?\*/|(^|\s)//[^\n]*`)
	literal = regexp.MustCompile("'(?:[^'\\\\\\n]|\\\\.)*'|\"(?:[^\"\\\\\\n]|\\\\.)*\"|`(?:[^`\\\\]|\\\\.)*`")
	blank   = regexp.MustCompile(`\$\{[^}]*\}`)
	// A capital and small letters, or words after what shows them to people.
	sentence = regexp.MustCompile(`^[^\p{L}]*\p{Lu}\p{Ll}`)
	shown    = regexp.MustCompile(`(?:\b(?:notice|whisper)\(|\.(?:textContent|title|placeholder|ariaLabel) = |setAttribute\('(?:title|aria-label|placeholder)', |make\('\w+', '[^']*', )$`)
	letters  = regexp.MustCompile(`\p{L}{2}`)
)

// What begins with a capital and is no sentence: names of keys, errors, headers and of the product.
var notSaid = []string{
	"Enter", "Escape", "Tab", "Home", "End", "Space", "Delete", "ArrowDown", "ArrowUp", "ArrowLeft", "ArrowRight", "Authorization", "Bearer ", "X-Holdfast-Dev", "Holdfast", " · Holdfast",
}

func spoken(before, text string) bool {
	text = blank.ReplaceAllString(text[1:len(text)-1], "")
	if slices.Contains(notSaid, text) || strings.HasSuffix(text, "Error") {
		return false
	}
	return sentence.MatchString(text) || shown.MatchString(before) && letters.MatchString(text)
}

// TestNoSentenceStandsElsewhere: what people read is in page/words/, once for each language.
func TestNoSentenceStandsElsewhere(t *testing.T) {
	for before, text := range map[string]string{"notice(": "'muted'", "x = ": "'Try again'", "say(": "`… ${a} Wait`", "make('p', 'hint', ": "'no picture'", "\ttitle: ": `"Über uns"`} {
		if !spoken(before, text) {
			t.Errorf("%s%s is not found", before, text)
		}
	}
	err := fs.WalkDir(web.Static(), "page", func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path.Dir(file) == "page/words" {
			return err
		}
		content, err := fs.ReadFile(web.Static(), file)
		if err != nil {
			return err
		}
		switch path.Ext(file) {
		case ".js":
			source := comment.ReplaceAllString(string(content), "")
			for _, at := range literal.FindAllStringIndex(source, -1) {
				if text := source[at[0]:at[1]]; spoken(source[:at[0]], text) {
					t.Errorf("%s says %s: put it into page/words/ and say() it", file, text)
				}
			}
		case ".css":
			for _, found := range regexp.MustCompile(`content: "[^"]*\p{L}[^"]*"`).FindAllString(string(content), -1) {
				t.Errorf("%s says %s: use attr()", file, found)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestTheDocumentSaysNothing: documents say nothing but their title, and what needs JavaScript says so in every language.
func TestTheDocumentSaysNothing(t *testing.T) {
	for _, file := range []string{"index.html", "check/index.html"} {
		content, err := fs.ReadFile(web.Static(), file)
		if err != nil {
			t.Fatal(err)
		}
		page := string(content)
		for _, silent := range []string{`(?s)<noscript>.*</noscript>`, `<title>Holdfast</title>`, `<h1>Holdfast</h1>`, `<kbd>\w+</kbd>`} {
			page = regexp.MustCompile(silent).ReplaceAllString(page, "")
		}
		for _, found := range regexp.MustCompile(`>[^<>]*\p{L}[^<>]*<|\s(?:aria-label|title|placeholder|alt)="[^"]*"`).FindAllString(page, -1) {
			t.Errorf("%s says %s: use data-say, data-label, data-title or data-hint", file, found)
		}
	}
}
