package cli

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/holdfast-rtc/holdfast/node"
)

// TestEventsAreSentences, page after page; what strangers chose cannot steer the terminal.
func TestEventsAreSentences(t *testing.T) {
	pages := map[string]string{
		"since=1h0m0s&node=sfu-2": `{"events":[{"id":"5-0","at":"2026-11-27T15:41:17.832Z","kind":"node_down","node":"sfu-2","cause":"stream broken"}],"next":"5-0","more":true}`,
		"after=5-0&node=sfu-2":    `{"events":[{"id":"6-0","at":"2026-11-27T15:41:17.9Z","kind":"room_opened","node":"sfu-2","room":"a\u001b[2J"}],"next":"6-0","more":false}`,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		for want, page := range pages {
			if query.Encode() == sorted(t, want) {
				_, _ = io.WriteString(w, page)
				return
			}
		}
		t.Errorf("asked for %s", r.URL)
	}))
	defer http.DefaultClient.CloseIdleConnections()
	defer server.Close()
	ask := func(args ...string) []string {
		t.Helper()
		var out, said strings.Builder
		line := append([]string{"events", "--server", server.URL, "--token", "x", "--node", "sfu-2"}, args...)
		if code := run(t.Context(), line, streams{in: strings.NewReader(""), out: &out, err: &said}); code != exitDone {
			t.Fatalf("exit code %d: %s", code, said.String())
		}
		return strings.Split(strings.TrimSpace(out.String()), "\n")
	}
	lines := ask()
	if len(lines) != 2 || !strings.HasSuffix(lines[0], "  sfu-2 died (stream broken)") || !strings.HasSuffix(lines[1], "  a\ufffd[2J: opened on sfu-2") {
		t.Errorf("%q", lines)
	}
	if lines := ask("--json"); len(lines) != 2 || !strings.Contains(lines[0], `"kind":"node_down"`) {
		t.Errorf("%q", lines)
	}
}

// TestEventsTellAFailoverInOneLine, unless only some of its events were asked for; programs get each event.
func TestEventsTellAFailoverInOneLine(t *testing.T) {
	const answer = `{"events":[
		{"id":"5-0","at":"2026-11-27T15:41:17.832Z","kind":"room_rehomed","room":"hall","from":"sfu-2","to":"sfu-1","about":"7","cause":"its process is gone: dead (proof: stream broken, control refused, media refused)"},
		{"id":"6-0","at":"2026-11-27T15:41:17.990Z","kind":"room_back","room":"hall","node":"signaling-1","peers":2,"back":2,"worstGapMs":140,"about":"7"},
		{"id":"7-0","at":"2026-11-27T15:41:18.000Z","kind":"room_closed","room":"blue","node":"sfu-1"}],"next":"7-0"}`
	lines := strings.Split(asked(t, answer, "events"), "\n")
	if got := strings.Join(lines, "\n"); len(lines) != 3 || !strings.HasSuffix(lines[1], "  blue: closed on sfu-1") ||
		!strings.HasSuffix(lines[0], "  hall: sfu-2 died (stream broken, ports refused) -> sfu-1, 2 of 2 back, worst 0.14 s") {
		t.Errorf("%q", got)
	}
	for _, args := range [][]string{{"--kind", "room_back"}, {"--json"}} {
		if got := asked(t, answer, append([]string{"events"}, args...)...); strings.Count(got, "\n") != 3 {
			t.Errorf("%v: %q", args, got)
		}
	}
}

// sorted is the query as url.Values writes it.
func sorted(t *testing.T, query string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "/?"+query, nil)
	if err != nil {
		t.Fatal(err)
	}
	return request.URL.Query().Encode()
}

// TestEachRequestHasATokenOfItsOwn: one is good for a minute, and --follow asks for hours.
func TestEachRequestHasATokenOfItsOwn(t *testing.T) {
	var tokens []string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		tokens = append(tokens, r.Header.Get("Authorization"))
	}))
	defer http.DefaultClient.CloseIdleConnections()
	defer server.Close()
	f := serverFlags{Server: server.URL, KeyringConfig: node.KeyringConfig{APIKeys: goodKeys}}
	for range 2 {
		if _, err := f.send(t.Context(), http.MethodGet, "events"); err != nil || f.Token != "" {
			t.Errorf("%v, and the token %q is kept", err, f.Token)
		}
	}
	f.Token = "given"
	if _, err := f.send(t.Context(), http.MethodGet, "events"); err != nil || len(tokens) != 3 || len(tokens[0]) < 50 || tokens[2] != "Bearer given" {
		t.Errorf("%v, %q", err, tokens)
	}
}
