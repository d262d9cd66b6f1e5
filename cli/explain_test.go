package cli

import (
	"encoding/json"
	"os"
	"strings"
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

func TestExplainSaysWhenSilenceIsEnough(t *testing.T) {
	for answer, want := range map[string]bool{
		`{"heldBy":[{"node":"sfu-1","peers":[{},{}],"standby":{"node":"sfu-4","connections":2}}]}`: true,
		`{"heldBy":[{"node":"sfu-1","peers":[{},{}],"standby":{"node":"sfu-4","connections":1}}]}`: false,
	} {
		var given reasons
		if err := json.Unmarshal([]byte(answer), &given); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(given.text("standup"), "goes there when sfu-1 is silent"); got != want {
			t.Errorf("%s: said %t", answer, got)
		}
	}
}

func TestExplainShowsTheMembersOfARoom(t *testing.T) {
	const answer = `{"heldBy":[{"node":"sfu-1","peers":[{},{},{}],"members":[
		{"node":"sfu-1","people":1,"egressBitsPerSecond":2500000},
		{"node":"sfu-2","people":1,"egressBitsPerSecond":1000000,"fill":0.43,"stays":"stays until it is gathered by hand","why":"an operator ordered it","since":1795479085200,"link":{"up":true,"sent":{"layers":3}}},
		{"node":"sfu-3","people":1,"link":{"up":false}}],
		"changes":[{"at":1795479085200,"what":"appoint","node":"sfu-2","why":"by hand"},{"at":1795479085200,"what":"move","node":"sfu-1","to":"sfu-2","people":10,"why":"its link loads the owner"}],"standby":{"node":"sfu-4","connections":2}}]}`
	const want = `standup is open on sfu-1, with 3 people.
  sfu-4 stands by for 2 connections.
  sfu-1 has 1 person and sends 2.5 Mbit/s: it has the pin.
  sfu-2 has 1 person and sends 1.0 Mbit/s, 43 % of its ceiling with all rooms, and is sent 3 layers: a branch since 2026-11-24 00:11:25.200Z, an operator ordered it; it stays until it is gathered by hand.
  sfu-3 has 1 person and sends 0.0 Mbit/s, and its link is down: a branch, no reason was given.
  Changes of its nodes
    2026-11-24 00:11:25.200Z  appoint sfu-2: by hand
    2026-11-24 00:11:25.200Z  move 10 people from sfu-1 to sfu-2: its link loads the owner
Why it is there is told to operators only.
`
	var given reasons
	if err := json.Unmarshal([]byte(answer), &given); err != nil {
		t.Fatal(err)
	}
	if got := given.text("standup"); got != want {
		t.Errorf("the text is\n%s\nwant\n%s", got, want)
	}
}
