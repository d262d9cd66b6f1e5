package events

import (
	"os"
	"regexp"
	"testing"
)

// A kind that Known leaves out is refused by GET /events?kind=, and one without a sentence is shown by its bare name.
func TestEveryKindIsKnown(t *testing.T) {
	source, err := os.ReadFile("events.go")
	if err != nil {
		t.Fatal(err)
	}
	kinds := regexp.MustCompile(`(?m)^\t\w+ +Kind = "(\w+)"`).FindAllStringSubmatch(string(source), -1)
	if len(kinds) < 17 {
		t.Fatalf("%d kinds are found in events.go", len(kinds))
	}
	for _, kind := range kinds {
		e := Event{Kind: Kind(kind[1]), Room: "hall", Node: "sfu-1"}
		if !e.Kind.Known() || e.Sentence() == kind[1]+" hall sfu-1" {
			t.Errorf("%s: known %t, %q", kind[1], e.Kind.Known(), e.Sentence())
		}
	}
}
