package cli

import (
	"encoding/json"
	"os"
	"testing"
)

// TestExplainReadsAsText: testdata/explain.json is an answer of the API, explain.txt what people read.
func TestExplainReadsAsText(t *testing.T) {
	body, err := os.ReadFile("testdata/explain.json")
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("testdata/explain.txt")
	if err != nil {
		t.Fatal(err)
	}
	var answer reasons
	if err := json.Unmarshal(body, &answer); err != nil {
		t.Fatal(err)
	}
	if got := answer.text("standup"); got != string(want) {
		t.Errorf("the text is\n%s\nwant\n%s", got, want)
	}
	answer.Explanation = nil
	answer.HeldBy = nil
	if got, want := answer.text("a\x1b[2J"), "\"a\\x1b[2J\" is open nowhere.\nWhy it is there is told to operators only.\n"; got != want {
		t.Errorf("the text is %q, want %q", got, want)
	}
}
