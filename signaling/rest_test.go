package signaling

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/testkit"
	"github.com/holdfast-rtc/holdfast/signaling/access"
	"github.com/holdfast-rtc/holdfast/signaling/limits"
	"github.com/holdfast-rtc/holdfast/signaling/rest"
)

// get fetches a path of the signaling node, with a bearer token if there is one.
func (e *signalingNode) get(path, token string) (status int, body string, header http.Header) {
	e.rig.t.Helper()
	return e.request(http.MethodGet, path, token)
}

func (e *signalingNode) request(method, path, token string) (status int, body string, header http.Header) {
	e.rig.t.Helper()
	return e.requestBody(method, path, token, "")
}

func (e *signalingNode) requestBody(method, path, token, content string) (status int, body string, header http.Header) {
	e.rig.t.Helper()
	request, err := http.NewRequest(method, "http://"+e.addr+path, strings.NewReader(content))
	if err != nil {
		e.rig.t.Fatal(err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	return e.rig.do(request)
}

func (r *rig) do(request *http.Request) (status int, body string, header http.Header) {
	r.t.Helper()
	transport := &http.Transport{DisableKeepAlives: true}
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport, Timeout: generous}).Do(request)
	if err != nil {
		r.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return response.StatusCode, string(text), response.Header
}

func TestReadinessComesOnceAndStays(t *testing.T) {
	r := newRig(t)
	e := r.signalingNode(nil)
	r.views.settle(false)
	if status, _, _ := e.get("/healthz", ""); status != http.StatusOK {
		t.Errorf("healthz says %d", status)
	}
	if status, body, _ := e.get("/readyz", ""); status != http.StatusServiceUnavailable || !strings.Contains(body, "cluster") {
		t.Errorf("readyz says %d %s", status, body)
	}
	r.views.settle(true)
	r.placer.mu.Lock()
	r.placer.fail = errors.New("down")
	r.placer.mu.Unlock()
	if status, body, _ := e.get("/readyz", ""); status != http.StatusServiceUnavailable || !strings.Contains(body, "store") {
		t.Errorf("readyz says %d %s", status, body)
	}
	for _, fail := range []error{nil, errors.New("down again")} {
		r.placer.mu.Lock()
		r.placer.fail = fail
		r.placer.mu.Unlock()
		if status, _, _ := e.get("/readyz", ""); status != http.StatusOK {
			t.Errorf("readyz says %d with a store that says %v", status, fail)
		}
	}
	e.overloaded.Store(true)
	if status, body, _ := e.get("/readyz", ""); status != http.StatusServiceUnavailable || !strings.Contains(body, "0 sockets") {
		t.Errorf("readyz says %d %s", status, body)
	}
}

func TestTheProcessTellsWhatItHolds(t *testing.T) {
	r, _, e := lobby(t)
	e.join("lobby", "Ada")
	e.dial()
	admin, err := r.keys.Mint("", access.Operator("root"), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if status, _, _ := e.get("/api/v1/process", r.token("lobby", "Ada")); status != http.StatusForbidden {
		t.Errorf("somebody is answered %d", status)
	}
	// The one who waits, and the connection that asks. The connection of the answer before counts until the server has seen it end.
	testkit.Eventually(t, "one person and two connections without a session", func() bool {
		status, body, _ := e.get("/api/v1/process", admin)
		var answer rest.ProcessAnswer
		if err := json.Unmarshal([]byte(body), &answer); err != nil || status != http.StatusOK {
			t.Fatalf("%d %s (%v)", status, body, err)
		}
		return answer.Node == "signaling-1" && answer.Sockets == 1 && answer.Waiting == 2 && answer.Goroutines > 0 && answer.HeapBytes > 0
	})
	for path, want := range map[string]string{
		"?node=sfu-1":           `"heapBytes":1073741824`,
		"?node=sfu-1&collect=1": `"heapBytes":1048576`,
		"?collect=1":            `"node":"signaling-1"`,
		"?node=nobody":          "No media node",
	} {
		_, body, _ := e.get("/api/v1/process"+path, admin)
		if !strings.Contains(strings.ReplaceAll(body, " ", ""), strings.ReplaceAll(want, " ", "")) {
			t.Errorf("%s is answered %s, want %s in it", path, body, want)
		}
	}
	// Collecting garbage on demand has a bound for each process; looking has none.
	refused := 0
	for range 3 * limits.CollectionBurst {
		status, body, header := e.get("/api/v1/process?node=sfu-1&collect", admin)
		if status == http.StatusTooManyRequests && strings.Contains(body, "too_many_messages") && header.Get("Retry-After") != "" {
			refused++
		} else if status != http.StatusOK {
			t.Fatalf("collecting is answered %d %s", status, body)
		}
		if status, body, _ := e.get("/api/v1/process?node=sfu-1", admin); status != http.StatusOK {
			t.Fatalf("looking is answered %d %s", status, body)
		}
	}
	if refused == 0 {
		t.Errorf("%d collections in a row, and none was refused", 3*limits.CollectionBurst)
	}
}

func TestThePageHasItsHeaders(t *testing.T) {
	r := newRig(t)
	e := r.signalingNode(nil)
	status, body, header := e.get("/", "")
	if status != http.StatusOK || !strings.Contains(body, "hello") {
		t.Fatalf("the page is %d %s", status, body)
	}
	for name, want := range map[string]string{
		"Content-Security-Policy": "script-src 'self'", "X-Content-Type-Options": "nosniff", "Permissions-Policy": "camera=(self)",
	} {
		if !strings.Contains(header.Get(name), want) {
			t.Errorf("%s is %q, want %q in it", name, header.Get(name), want)
		}
	}
	if status, _, _ := e.get("/api/v1/dev/token?room=lobby", ""); status != http.StatusNotFound {
		t.Errorf("outside dev the token endpoint says %d", status)
	}
}

// The page learns where its invitations lead; an address without a place for the room is refused.
func TestInvitationsLeadToTheApplication(t *testing.T) {
	const address = "https://app.example.org/join?room={room}"
	_, _, e := lobbyWith(t, func(c *Config) { c.InviteURL = address })
	if _, body, _ := e.get("/api/v1/config", ""); !strings.Contains(body, `"invite":"`+address+`"`) {
		t.Errorf("config is %s", body)
	}
	for _, bad := range []string{"https://app.example.org/join", "javascript:alert({room})", "/join/{room}", "https://{room}:x"} {
		config := DefaultConfig("sig-1")
		config.InviteURL = bad
		if err := config.Validate(); err == nil || !strings.Contains(err.Error(), "invitations") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

func TestDevHandsOutTokens(t *testing.T) {
	r, _, e := lobbyWith(t, func(c *Config) { c.Dev = true })
	if _, body, _ := e.get("/api/v1/config", ""); body != `{"dev":true,"protocol":1}`+"\n" {
		t.Errorf("config is %s", body)
	}
	_, body, header := e.get("/api/v1/dev/token?room=lobby&name=Ada", "")
	var answer struct{ Token string }
	if err := json.Unmarshal([]byte(body), &answer); err != nil || header.Get("Cache-Control") != "no-store" {
		t.Fatalf("%s: %v, %v", body, err, header)
	}
	grant, err := r.keys.Verify(answer.Token)
	if err != nil || grant.Name != "Ada" || grant.Room != "lobby" || !grant.RoomJoin || grant.RoomAdmin {
		t.Fatalf("token grants %+v, %v", grant, err)
	}
	_, body, _ = e.get("/api/v1/dev/token?room=lobby&moderate", "")
	if err := json.Unmarshal([]byte(body), &answer); err != nil {
		t.Fatal(err)
	}
	if grant, err := r.keys.Verify(answer.Token); err != nil || grant.ForRoomAdmin("lobby") != nil {
		t.Errorf("a host's token grants %+v, %v", grant, err)
	}
	_, body, _ = e.get("/api/v1/dev/token?room=lobby&identity=ada", "")
	if err := json.Unmarshal([]byte(body), &answer); err != nil {
		t.Fatal(err)
	}
	if grant, err := r.keys.Verify(answer.Token); err != nil || grant.Identity != "ada" {
		t.Errorf("a token of an identity grants %+v, %v", grant, err)
	}
	if status, body, _ := e.get("/api/v1/dev/token", ""); status != http.StatusBadRequest || !strings.Contains(body, "bad_room") {
		t.Errorf("without a room: %d %s", status, body)
	}
}

// TestDevServesPagesOfThisMachineAndNoOthers: a page of another local server may embed the
// library, and one that was made ours by DNS rebinding gets nothing.
func TestDevServesPagesOfThisMachineAndNoOthers(t *testing.T) {
	r := newRig(t)
	dev := r.signalingNode(func(c *Config) { c.Dev, c.Origins = true, []string{"box.example", "app.example:3000"} })
	production := r.signalingNode(nil)
	send := func(e *signalingNode, host, origin string) (status int, allowed string) {
		t.Helper()
		request, err := http.NewRequest(http.MethodGet, "http://"+e.addr+"/api/v1/dev/token?room=lobby", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		request.Host = host
		request.Header.Set("Origin", origin)
		transport := &http.Transport{DisableKeepAlives: true}
		defer transport.CloseIdleConnections()
		response, err := (&http.Client{Transport: transport, Timeout: generous}).Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		return response.StatusCode, response.Header.Get("Access-Control-Allow-Origin")
	}
	for _, origin := range []string{"http://localhost:3000", "http://127.0.0.1:5173", "http://[::1]:8000", "http://localhost", "http://app.example:3000"} {
		if status, allowed := send(dev, "", origin); status != http.StatusOK || allowed != origin {
			t.Errorf("a page of %s: %d, allowed %q", origin, status, allowed)
		}
	}
	for _, origin := range []string{"https://evil.example", "http://localhost.evil.example:80", "http://192.0.2.7:80", "null"} {
		if _, allowed := send(dev, "", origin); allowed != "" {
			t.Errorf("a page of %s is allowed as %q", origin, allowed)
		}
	}
	if _, allowed := send(production, "", "http://localhost:3000"); allowed != "" {
		t.Errorf("in production, a local page is allowed as %q", allowed)
	}
	for host, want := range map[string]int{
		"evil.example": http.StatusForbidden, "evil.example:7880": http.StatusForbidden, "localhost.evil.example": http.StatusForbidden,
		"127.0.0.1.evil.example": http.StatusForbidden, "other.example:3000": http.StatusForbidden,
		"localhost:7880": http.StatusOK, "a.localhost": http.StatusOK, "192.0.2.7:7880": http.StatusOK, "[::1]:7880": http.StatusOK, "box.example:7880": http.StatusOK,
	} {
		if status, _ := send(dev, host, "http://"+host); status != want {
			t.Errorf("a request to %s is answered %d, want %d", host, status, want)
		}
	}
	if line := askPlainly(t, dev.addr, "GET /healthz HTTP/1.0\r\n\r\n"); !strings.Contains(line, " 200 ") { // as haproxy does
		t.Errorf("a health check that names no host is answered %q", line)
	}
	if status, _ := send(production, "any.example", ""); status != http.StatusNotFound { // there is no such path there
		t.Errorf("in production, another name is answered %d", status)
	}
}

// askPlainly returns the first line of the answer.
func askPlainly(t *testing.T, address, request string) string {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return line
}

func TestOperatorsNeedTheirGrant(t *testing.T) {
	r := newRig(t)
	one, two := r.node("sfu-1"), r.node("sfu-2")
	two.stop()
	e := r.signalingNode(nil)
	mint := func(g access.Grant) string {
		token, err := r.keys.Mint("", g, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	admin := mint(access.Operator("root"))
	nobody, host := r.token("lobby", "Ada"), mint(access.Grant{Identity: "host", Room: "lobby", RoomAdmin: true})
	unbound := mint(access.Grant{Identity: "host", RoomAdmin: true}) // of no room, so it runs none
	for path, wants := range map[string]map[string]int{
		"/api/v1/nodes":       {host: 403, unbound: 403},
		"/api/v1/process":     {host: 403, unbound: 403},
		"/api/v1/rooms":       {host: 403, unbound: 403},
		"/api/v1/rooms/lobby": {host: 200, unbound: 403},
		"/api/v1/rooms/attic": {host: 403, unbound: 403},
		"/api/v1/overview":    {host: 403, unbound: 403},
		"/api/v1/ring":        {host: 403, unbound: 403},
		"/api/v1/loads":       {host: 403, unbound: 403},
		"/api/v1/room-list":   {host: 403, unbound: 403},
	} {
		maps.Copy(wants, map[string]int{"": 401, "nonsense": 401, nobody: 403, admin: 200})
		for token, want := range wants {
			status, body, header := e.get(path, token)
			if status != want || header.Get("Cache-Control") != "no-store" {
				t.Errorf("%s says %d %s (%s), want %d", path, status, body, header.Get("Cache-Control"), want)
			}
			if status == http.StatusForbidden && !strings.Contains(body, "Ask the application for another token.") {
				t.Errorf("%s is refused with %s", path, body)
			}
		}
	}
	if _, body, _ := e.get("/api/v1/rooms/lobby", host); !strings.Contains(body, `"identity":"ada"`) || strings.Contains(body, "explanation") {
		t.Errorf("who runs the room sees %s", body)
	}
	refused := 0
	for range 2 * limits.RoomQuestionBurst {
		if status, body, _ := e.get("/api/v1/rooms/lobby", host); status == http.StatusTooManyRequests && strings.Contains(body, "too_many_messages") {
			refused++
		}
	}
	if status, _, _ := e.get("/api/v1/rooms/lobby", admin); refused == 0 || status != http.StatusOK {
		t.Errorf("who runs a room asked %d times and was refused %d times, and the operator is answered %d", 2*limits.RoomQuestionBurst, refused, status)
	}
	_, body, _ := e.get("/api/v1/rooms", admin)
	if want := `{"rooms":[{"room":"lobby","node":"sfu-1","boot":"` + string(one.boot) + `","epoch":1769000000000,"peers":[{"peer":"p-1","identity":"ada",` +
		`"attached":false,"connected":false,"offers":0,"signaling":""}],"packetsForwarded":0,"packetsDropped":0,"packetsLate":0,"egressBitsPerSecond":0}],"unreachable":["sfu-2"]}` + "\n"; body != want {
		t.Errorf("rooms are\n%s want\n%s", body, want)
	}
	if _, body, _ := e.get("/api/v1/rooms/a%2Fb%20%7B", admin); !strings.Contains(body, `"room":"a/b {"`) || !strings.Contains(body, `"heldBy":[]`) {
		t.Errorf("room is %s", body)
	}
	if _, body, _ := e.get("/api/v1/nodes", admin); !strings.Contains(body, `{"node":"sfu-1","boot":"`+string(one.boot)+`","role":"sfu","state":"up","control":"`+one.control+`"`) {
		t.Errorf("nodes are %s", body)
	}
}

// TestOnlyClusterAdminChangesTheCluster: roomList, which monitoring has, reads.
func TestOnlyClusterAdminChangesTheCluster(t *testing.T) {
	r := newRig(t)
	r.node("sfu-1")
	r.node("sfu-2")
	e := r.signalingNode(nil)
	reads := r.mint(access.Grant{Identity: "monitor", RoomList: true}, generous)
	runsRooms := r.mint(access.Grant{Identity: "support", RoomList: true, RoomAdmin: true}, generous)
	ofARoom := r.mint(access.Grant{Identity: "host", Room: "lobby", RoomAdmin: true, ClusterAdmin: true}, generous)
	for _, change := range []struct{ method, path, body string }{
		{http.MethodPost, "/api/v1/nodes/sfu-1/drain", `{"keep": true}`},
		{http.MethodDelete, "/api/v1/nodes/sfu-1/drain", ""},
		{http.MethodPost, "/api/v1/rooms/lobby/move", "{}"},
		{http.MethodDelete, "/api/v1/presence?user=ada", ""},
		{http.MethodPost, "/api/v1/messages", `{"to": ["ada"], "body": {}}`},
	} {
		for name, token := range map[string]string{"a reader": reads, "who runs all rooms": runsRooms, "who runs one room": ofARoom} {
			if status, body, _ := e.requestBody(change.method, change.path, token, change.body); status != http.StatusForbidden || !strings.Contains(body, "clusterAdmin") {
				t.Errorf("%s %s by %s: %d %s", change.method, change.path, name, status, body)
			}
		}
	}
	for _, path := range []string{"/api/v1/nodes", "/api/v1/nodes/sfu-1/drain", "/api/v1/process", "/api/v1/rooms", "/api/v1/rooms/lobby", "/api/v1/rooms/lobby/roster"} {
		if status, body, _ := e.get(path, reads); status != http.StatusOK {
			t.Errorf("a reader asks for %s: %d %s", path, status, body)
		}
	}
	changes := r.mint(access.Grant{Identity: "ops", ClusterAdmin: true}, generous)
	if status, body, _ := e.requestBody(http.MethodPost, "/api/v1/nodes/sfu-1/drain", changes, `{"keep": true}`); status != http.StatusOK {
		t.Errorf("clusterAdmin drains: %d %s", status, body)
	}
	if status, body, _ := e.get("/api/v1/nodes", changes); status != http.StatusForbidden || !strings.Contains(body, "roomList") {
		t.Errorf("clusterAdmin alone reads: %d %s", status, body)
	}
}
