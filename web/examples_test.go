package web_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/tool"
	"github.com/holdfast-rtc/holdfast/signaling/access"
)

const (
	exampleKey    = "example"
	exampleSecret = "the-secret-of-an-example-which-is-long-enough"
)

// TestTokenServers: the servers of examples/tokens give tokens that a signaling node takes, for that room and person and nothing more,
// also where names need escaping.
func TestTokenServers(t *testing.T) {
	keys, err := access.ParseKeyring(exampleKey + ":" + exampleSecret)
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(t.TempDir(), "server")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-C", "examples/tokens", "-o", binary).CombinedOutput(); err != nil {
		t.Fatalf("go build -C examples/tokens: %v\n%s", err, out)
	}
	for name, command := range map[string][]string{
		"Go":     {binary},
		"Node":   {tool.Find(t, "node"), "examples/tokens/server.mjs"},
		"Python": {tool.Find(t, "python3"), "examples/tokens/server.py"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := startTokens(t, command)
			for room, person := range map[string]string{"hall": "Ada", "Straße & mehr": "Zoë \"Z\" 李"} {
				status, header, body := get(t, address+"?"+url.Values{"room": {room}, "name": {person}}.Encode())
				var answer struct{ Token string }
				if err := json.Unmarshal(body, &answer); err != nil || status != http.StatusOK {
					t.Fatalf("status %d, %s", status, body)
				}
				if got := header.Get("Access-Control-Allow-Origin"); got != "http://page.example" {
					t.Errorf("pages of %q may read it", got)
				}
				grant, err := keys.Verify(answer.Token)
				if err != nil {
					t.Fatal(err)
				}
				if until := time.Until(grant.Expires); until <= 0 || until > time.Hour {
					t.Errorf("the token is good for %v", until)
				}
				want := access.Everything(person, "")
				want.Room, want.Name, want.Key, want.Expires, want.RoomJoin = grant.Room, person, exampleKey, grant.Expires, true
				want.CanRename, want.CanWatch, want.CanMessage = false, false, false
				if string(grant.Room) != room || !reflect.DeepEqual(grant, want) {
					t.Errorf("the token grants\n%+v, want\n%+v", grant, want)
				}
			}
			for _, incomplete := range []string{"?room=hall", "?name=Ada", ""} {
				if status, _, body := get(t, address+incomplete); status != http.StatusBadRequest {
					t.Errorf("%s gets %d %s", incomplete, status, body)
				}
			}
		})
	}
}

// startTokens starts a server of examples/tokens, which says its address first. It ends with the test.
func startTokens(t *testing.T, command []string) (address string) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	server := exec.CommandContext(ctx, command[0], append(command[1:], "127.0.0.1:0")...)
	server.Env = append(os.Environ(), "HOLDFAST_API_KEYS="+exampleKey+":"+exampleSecret+",other:"+exampleSecret, "ORIGIN=http://page.example")
	out, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop()
		_ = server.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("%v says no address: %v", command, err)
	}
	return strings.TrimSpace(line)
}

func get(t *testing.T, address string) (status int, header http.Header, body []byte) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err = io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, response.Header, body
}
