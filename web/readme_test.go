package web_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestEventsAreDocumented: README.md has each event that a call tells an application.
func TestEventsAreDocumented(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(readme), "\n## Events\n")
	table, _, _ = strings.Cut(table, "\n## ")
	events := 0
	for _, file := range []string{"call.js", "moderation.js", "door.js", "watch-list.js"} {
		source, err := os.ReadFile("static/holdfast/" + file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`emit\([\w.#]+, '([a-z-]+)'|for \(const type of \['([a-z', -]+)'\]\) on\(media`).FindAllStringSubmatch(string(source), -1) {
			for event := range strings.SplitSeq(m[1]+m[2], "', '") {
				events++
				if !strings.Contains(table, "`"+event+"`") {
					t.Errorf("README.md has no event %s, which %s tells", event, file)
				}
			}
		}
	}
	if events < 15 {
		t.Errorf("read only %d events", events)
	}
}
