package cli

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// asked runs a verb against a server with one answer.
func asked(t *testing.T, answer string, line ...string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, answer) }))
	defer http.DefaultClient.CloseIdleConnections()
	defer server.Close()
	var out, said strings.Builder
	line = append(line, "--server", server.URL, "--token", "x")
	if code := run(t.Context(), line, streams{in: strings.NewReader(""), out: &out, err: &said}); code != exitDone {
		t.Fatalf("%v: exit code %d: %s", line, code, said.String())
	}
	return out.String()
}

// TestNodesIsATableForPeople and JSON for programs; what strangers chose cannot steer the terminal.
func TestNodesIsATableForPeople(t *testing.T) {
	const answer = `{"nodes":[
		{"node":"sfu-1","role":"sfu","state":"up","version":"0.2.0","rooms":3,"peers":9,"egressBitsPerSecond":328000000,"ceilingBitsPerSecond":800000000,
			"egressPacketsPerSecond":52000,"ceilingPacketsPerSecond":100000,"limitedSeconds":75,"stalled":1},
		{"node":"sfu-2","role":"sfu","state":"dead","version":"0.2.0","at":"2026-11-27T15:41:17.832Z","cause":"stream broken\u001b[2J"},
		{"node":"sfu-3","role":"sfu","state":"up","version":"0.1.0","draining":true,"ceilingBitsPerSecond":800000000,"ceilingPacketsPerSecond":100000,"mediaSilent":["192.0.2.7:7882"]},
		{"node":"sfu-4","role":"sfu","state":"up","version":"0.2.0","draining":true,"suspect":true,"unreachable":true},
		{"node":"sfu-5","role":"sfu","state":"left","version":"0.1.0","at":"2026-11-27T15:40:00Z"},
		{"node":"signaling-1","role":"signaling","state":"up","version":"","unreachable":true,"sockets":12}],
		"settled":false,"mixedVersions":true}`
	const want = `NODE         ROLE       STATE        BITS  PACKETS  ROOMS  PEOPLE  SOCKETS  VERSION
sfu-1        sfu        up           41 %  52 %     3      9       -        0.2.0
sfu-2        sfu        dead         -     -        -      -       -        0.2.0
sfu-3        sfu        draining     0 %   0 %      0      0       -        0.1.0 (!)
sfu-4        sfu        suspect      -     -        0      0       -        0.2.0
sfu-5        sfu        left         -     -        -      -       -        0.1.0
signaling-1  signaling  unreachable  -     -        -      -       12       unknown (!)
sfu-1 has made pictures smaller for 1m15s, because it is near a ceiling.
sfu-1 sends nothing to 1 client.
sfu-2 died at 2026-11-27 15:41:17.832Z (stream broken?[2J).
sfu-3 does not answer at 192.0.2.7:7882, of which clients are told.
sfu-5 left at 2026-11-27 15:40:00.000Z.
The nodes run different versions; (!) marks those that differ from most. Finish the upgrade, or go back.
The signaling node that answered has not seen the whole cluster yet.
`
	if got := asked(t, answer, "nodes"); got != want {
		t.Errorf("the table is\n%s\nwant\n%s", got, want)
	}
	if got := asked(t, `{"nodes":[],"settled":true}`, "nodes"); got != "No node is known.\n" {
		t.Errorf("without a node: %q", got)
	}
	sameJSON(t, answer, asked(t, answer, "nodes", "--json"))
}

func TestRemoveSaysWhatItEnded(t *testing.T) {
	const answer = `{"removed":[{"peer":"p1","node":"sfu-1"},{"peer":"p2","node":"sfu-2"}],"unreachable":["sfu-3"],"recorded":false}`
	const want = `ada was removed from blue: 2 connections on sfu-1, sfu-2 ended.
No answer from sfu-3: connections there were not ended.
The store does not have the removal yet; the signaling node keeps trying, and until then a client may resume.
`
	if got := asked(t, answer, "remove", "blue", "ada"); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	const whole = `{"removed":[{"peer":"p1","node":"sfu-1"}],"recorded":true}`
	if got := asked(t, whole, "remove", "blue", "ada"); got != "ada was removed from blue: 1 connection on sfu-1 ended.\n" {
		t.Errorf("%q", got)
	}
	if got := asked(t, whole, "remove", "blue", "--all"); got != "Everybody was removed from blue: 1 connection on sfu-1 ended.\n" {
		t.Errorf("%q", got)
	}
	sameJSON(t, answer, asked(t, answer, "remove", "blue", "ada", "--json"))
}

// sameJSON compares two JSON values.
func sameJSON(t *testing.T, want, got string) {
	t.Helper()
	var a, b any
	if err := json.Unmarshal([]byte(want), &a); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(got), &b); err != nil {
		t.Fatalf("%v in %s", err, got)
	}
	x, _ := json.Marshal(a)
	if y, _ := json.Marshal(b); string(x) != string(y) {
		t.Errorf("%s\nwant\n%s", y, x)
	}
}

// TestARefusalIsTheServersSentence; where the token is at fault, or an answer has no sentence, it says who answered.
func TestARefusalIsTheServersSentence(t *testing.T) {
	for _, test := range []struct {
		status       int
		answer, want string
	}{
		{404, `{"code":"unknown_room","message":"No room is open; ` + "`holdfast rooms`" + ` lists them."}`, "holdfast rooms: No room is open; `holdfast rooms` lists them.\n"},
		{401, `{"code":"bad_token","message":"The token has expired."}`, "/api/v1/rooms answered 401 Unauthorized: The token has expired.\n"},
		{502, `<html>`, "/api/v1/rooms answered 502 Bad Gateway: <html>\n"},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(test.status)
			_, _ = io.WriteString(w, test.answer)
		}))
		var said strings.Builder
		code := run(t.Context(), []string{"rooms", "--server", server.URL, "--token", "x"}, streams{in: strings.NewReader(""), out: io.Discard, err: &said})
		server.Close()
		if code != exitFailed || !strings.HasSuffix(said.String(), test.want) {
			t.Errorf("exit code %d: %q, want %q", code, said.String(), test.want)
		}
	}
	http.DefaultClient.CloseIdleConnections()
}
