package cli

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestRoomsIsATableForPeople and JSON for programs; what strangers chose cannot steer the terminal.
func TestRoomsIsATableForPeople(t *testing.T) {
	const full = `{"rooms":[
		{"room":"blue","node":"sfu-2","epoch":7,"egressBitsPerSecond":1250000,"peers":[
			{"peer":"p1","identity":"ada","attached":true,"connected":true},
			{"peer":"p2","identity":"bob\u001b[2J\u202e","attached":true,"connected":false},
			{"peer":"p3","identity":"eve \u6771\u200c\u4eac","attached":false,"connected":true}]},
		{"room":"hall","node":"sfu-2","epoch":9,"egressBitsPerSecond":20000000,"peers":[],"members":[{"node":"sfu-2","people":0},{"node":"sfu-1","people":0},{"node":"sfu-3","people":0}]},
		{"room":"a long room","node":"sfu-1","epoch":8,"peers":[]}],
		"unreachable":["sfu-3"]}`
	answer := full
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/nodes") {
			_, _ = io.WriteString(w, `{"nodes":[{"node":"sfu-2","ceilingBitsPerSecond":100000000},{"node":"sfu-1"},{"node":"sfu-3","ceilingBitsPerSecond":100000000}]}`)
			return
		}
		_, _ = io.WriteString(w, answer)
	}))
	defer http.DefaultClient.CloseIdleConnections()
	defer server.Close()
	ask := func(args ...string) string {
		t.Helper()
		var out, said strings.Builder
		line := append([]string{"rooms", "--server", server.URL, "--token", "x"}, args...)
		if code := run(t.Context(), line, streams{in: strings.NewReader(""), out: &out, err: &said}); code != exitDone {
			t.Fatalf("exit code %d: %s", code, said.String())
		}
		return out.String()
	}
	const want = `ROOM         NODE      PEOPLE  SENT         SHARE  WHO
blue         sfu-2     3       1.2 Mbit/s   1.2 %  ada, "bob\x1b[2J\u202e" (no media), eve ` + "東\u200c京" + ` (away)
hall         sfu-2 +2  0       20.0 Mbit/s  10 %   -
a long room  sfu-1     0       0.0 Mbit/s   -      -
No answer from sfu-3: rooms there are not listed.
`
	if got := ask(); got != want {
		t.Errorf("the table is\n%s\nwant\n%s", got, want)
	}
	var given map[string]any
	if got := ask("--json"); json.Unmarshal([]byte(got), &given) != nil || len(given["rooms"].([]any)) != 3 {
		t.Errorf("--json gave %s", got)
	}
	answer = `{"rooms":[],"unreachable":[]}`
	if got := ask(); got != "No room is open.\n" {
		t.Errorf("without a room: %q", got)
	}
}

// TestTheStateFileMayBeNamedInTheEnvironment, as every flag.
func TestTheStateFileMayBeNamedInTheEnvironment(t *testing.T) {
	for _, line := range []string{"rooms", "nodes", "load", "load --url http://127.0.0.1:1", "token --identity ada"} {
		code, _, said := exec(t, map[string]string{"HOLDFAST_STATE": "/nowhere/state.json"}, strings.Fields(line)...)
		if code == exitDone || !strings.Contains(said, "/nowhere/state.json") {
			t.Errorf("HOLDFAST_STATE of %s: exit code %d\n%s", line, code, said)
		}
	}
}

// TestEveryVerbThatAsksADevClusterCanBeToldWhich: the advice "choose one with --state" must be good everywhere.
func TestEveryVerbThatAsksADevClusterCanBeToldWhich(t *testing.T) {
	for _, line := range []string{
		"rooms", "nodes", "explain room", "remove room ada", "token --identity ada", "load", "chaos kill",
		"dev status", "dev kill sfu-1", "dev start sfu-1", "dev add-sfu", "dev stop",
	} {
		code, _, said := exec(t, nil, append(strings.Fields(line), "--state", "/nowhere/state.json")...)
		if code == exitDone || !strings.Contains(said, "/nowhere/state.json") {
			t.Errorf("%s --state: exit code %d\n%s", line, code, said)
		}
	}
}
