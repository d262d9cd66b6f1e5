package signaling

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/signaling/access"
	"github.com/holdfast-rtc/holdfast/signaling/reply"
	"github.com/holdfast-rtc/holdfast/signaling/rest"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// goWords would tell a client how this server is written.
var goWords = regexp.MustCompile(`json:|Go |struct|wire\.|rest\.|strconv|ParseUint|invalid character`)

// refusedAs fails unless an answer is a refusal in JSON.
func (e *signalingNode) refusedAs(status int, code wire.Code, method, path, token, content string) http.Header {
	e.rig.t.Helper()
	got, body, header := e.requestBody(method, path, token, content)
	var refusal reply.Refusal
	if err := json.Unmarshal([]byte(body), &refusal); err != nil || got != status || refusal.Code != code || !strings.HasSuffix(refusal.Message, ".") ||
		header.Get("Content-Type") != "application/json" || goWords.MatchString(refusal.Message) {
		e.rig.t.Errorf("%s %s with %.60q is answered %d %s, want %d %s", method, path, content, got, body, status, code)
	}
	return header
}

// devNode is a signaling node with all routes, among them those of development clusters.
func devNode(t *testing.T) (*rig, *signalingNode) {
	t.Helper()
	r := peopled(t)
	return r, r.signalingNodeWith(&fakeKiller{}, func(c *Config) { c.Dev = true })
}

// TestEveryRefusalIsJSON: whatever address, method, token, query or body a request has, its refusal has a code and a sentence.
func TestEveryRefusalIsJSON(t *testing.T) {
	r, e := devNode(t)
	open := regexp.MustCompile(`^/(\*|ws|healthz|readyz|api/v1/(config|openapi\.json|dev/.*))$`)
	seen := map[string]bool{}
	rest.EachRoute(e.handler(), func(method, route string) {
		if route == "/twirp/*" { // Refusals of RoomService are Twirp's.
			return
		}
		path := strings.NewReplacer("{room}", "lobby", "{node}", "sfu-1", "{act}", "mute", "/*", "/lobby").Replace(route)
		if !open.MatchString(route) {
			e.refusedAs(http.StatusUnauthorized, wire.CodeBadToken, method, path, "", "")
			e.refusedAs(http.StatusUnauthorized, wire.CodeBadToken, method, path, "nonsense", "")
		}
		// An answer to HEAD has no body.
		if method != http.MethodHead {
			e.refusedAs(http.StatusBadRequest, wire.CodeBadMessage, method, path+"?room=%zz", "", "")
		}
		if !seen[path] && route != "/*" {
			seen[path] = true
			header := e.refusedAs(http.StatusMethodNotAllowed, wire.CodeWrongMethod, http.MethodPut, path, "", "")
			if !strings.Contains(header.Get("Allow"), method) {
				t.Errorf("PUT %s is told to use %q, want %s in it", path, header.Get("Allow"), method)
			}
		}
	})
	if len(seen) < 20 {
		t.Fatalf("%d routes", len(seen))
	}
	for _, path := range []string{"/api/v1/nothing", "/api/v2/rooms", "/api", "/nothing.js", "/holdfast/nothing/", "/api/v1/rooms/lobby/move/x"} {
		method := http.MethodGet
		if strings.HasSuffix(path, "/x") {
			method = http.MethodPost
			e.refusedAs(http.StatusMethodNotAllowed, wire.CodeWrongMethod, method, path, "", "")
			continue
		}
		e.refusedAs(http.StatusNotFound, wire.CodeNotFound, method, path, "", "")
	}
	root := r.mint(access.Operator("root"), time.Hour)
	for _, route := range []string{"PATCH /api/v1/door?room=lobby", "POST /api/v1/messages", "POST /api/v1/nodes/sfu-1/drain", "POST /api/v1/rooms/lobby/move"} {
		method, path, _ := strings.Cut(route, " ")
		for content, want := range map[string]wire.Code{
			`{"surprise": true}`: wire.CodeBadMessage, `[]`: wire.CodeBadMessage, `{`: wire.CodeBadMessage, `nonsense`: wire.CodeBadMessage, `{} {}`: wire.CodeBadMessage,
			`{"cap": "two", "to": 1, "deadlineMs": "x", "node": 7}`: wire.CodeBadMessage,
			`{"to": ["` + strings.Repeat("x", 128<<10) + `"]}`:      wire.CodeTooLarge,
		} {
			status := http.StatusBadRequest
			if want == wire.CodeTooLarge {
				status = http.StatusRequestEntityTooLarge
			}
			e.refusedAs(status, want, method, path, root, content)
		}
	}
	for _, c := range []struct {
		status       int
		code         wire.Code
		method, path string
	}{
		{http.StatusNotFound, wire.CodeUnknownPerson, http.MethodDelete, "/api/v1/peers?room=lobby&identity=nobody"},
		{http.StatusNotFound, wire.CodeUnknownPerson, http.MethodPost, "/api/v1/peers/mute?room=lobby&identity=nobody"},
		{http.StatusBadRequest, wire.CodeBadMessage, http.MethodPost, "/api/v1/peers/dance?room=lobby&identity=nobody"},
		{http.StatusNotFound, wire.CodeUnknownNode, http.MethodGet, "/api/v1/process?node=nobody"},
		{http.StatusNotFound, wire.CodeUnknownNode, http.MethodGet, "/api/v1/nodes/nobody/drain"},
		{http.StatusNotFound, wire.CodeUnknownRoom, http.MethodPost, "/api/v1/rooms/attic/move"},
		{http.StatusBadRequest, wire.CodeBadMessage, http.MethodGet, "/api/v1/presence?page=x"},
		{http.StatusBadRequest, wire.CodeBadMessage, http.MethodDelete, "/api/v1/presence"},
		{http.StatusBadRequest, wire.CodeBadMessage, http.MethodPost, "/api/v1/waiting?room=lobby"},
		{http.StatusBadRequest, wire.CodeBadRoom, http.MethodGet, "/api/v1/door"},
		{http.StatusBadRequest, wire.CodeBadMessage, http.MethodGet, "/api/v1/events?kind=comet"},
		{http.StatusBadRequest, wire.CodeBadMessage, http.MethodGet, "/api/v1/events?limit=many"},
		{http.StatusBadRequest, wire.CodeBadMessage, http.MethodGet, "/api/v1/room-list?sort=colour"},
		{http.StatusBadRequest, wire.CodeBadMessage, http.MethodGet, "/ws"},
		{http.StatusForbidden, wire.CodeNotAllowed, http.MethodPost, "/api/v1/dev/kill?node=sfu-1"},
		{http.StatusForbidden, wire.CodeNotAllowed, http.MethodPost, "/api/v1/dev/operator"},
	} {
		e.refusedAs(c.status, c.code, c.method, c.path, root, "")
	}
}

// TestARefusedUpgradeIsJSON: what the WebSocket library refuses is answered like every other request.
func TestARefusedUpgradeIsJSON(t *testing.T) {
	_, e := devNode(t)
	for origin, want := range map[string]int{"https://evil.example": http.StatusForbidden, "": http.StatusBadRequest} {
		request, err := http.NewRequest(http.MethodGet, "http://"+e.addr+"/ws", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Sec-WebSocket-Protocol", wire.Subprotocol)
		if origin != "" {
			for name, value := range map[string]string{
				"Origin": origin, "Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
			} {
				request.Header.Set(name, value)
			}
		}
		transport := &http.Transport{DisableKeepAlives: true}
		response, err := (&http.Client{Transport: transport, Timeout: generous}).Do(request)
		if err != nil {
			t.Fatal(err)
		}
		var refusal reply.Refusal
		if err := json.NewDecoder(response.Body).Decode(&refusal); err != nil || response.StatusCode != want || refusal.Code == "" {
			t.Errorf("origin %q: %d %+v (%v), want %d", origin, response.StatusCode, refusal, err, want)
		}
		_ = response.Body.Close()
		transport.CloseIdleConnections()
	}
}
