package cli

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/holdfast-rtc/holdfast/signaling/access"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestAPortThatIsTakenIsSaid(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	address := taken.Addr().String()
	t.Setenv("HOLDFAST_CLUSTER_KEY", goodKey)
	t.Setenv("HOLDFAST_API_KEYS", goodKeys)
	for _, line := range []string{
		"front --backend 127.0.0.1:1 --listen " + address,
		"store --listen " + address,
		"dev --state " + filepath.Join(t.TempDir(), "state.json") + " --listen " + address,
		"sfu --solo --media-listen 127.0.0.1:0 --control-listen " + address,
		"sfu --solo --media-listen 127.0.0.1:0 --control-listen 127.0.0.1:0 --store redis://127.0.0.1:1 --gossip-listen " + address,
		"signaling --solo --gossip-listen 127.0.0.1:0 --control-listen 127.0.0.1:0 --listen " + address,
	} {
		var said strings.Builder
		code := run(t.Context(), strings.Fields(line), streams{in: strings.NewReader(""), out: &said, err: &said})
		if code != exitInUse || !strings.Contains(said.String(), "Another process") || !strings.Contains(said.String(), address) {
			t.Errorf("%s: exit code %d\n%s", line, code, said.String())
		}
	}
}

func TestHealth(t *testing.T) {
	answer := http.StatusOK
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(answer)
		fmt.Fprintln(w, "a reason")
	})
	server, secure := httptest.NewServer(handler), httptest.NewTLSServer(handler)
	defer server.Close()
	defer secure.Close()
	ask := func(url string) (code int, said string) {
		var text strings.Builder
		code = run(context.Background(), []string{"health", url}, streams{in: strings.NewReader(""), out: &text, err: &text})
		return code, text.String()
	}
	if code, said := ask(server.URL); code != exitDone {
		t.Errorf("a healthy server: %d, %s", code, said)
	}
	for _, url := range []string{secure.URL, strings.Replace(secure.URL, "https", "http", 1)} {
		if code, said := ask(url); code != exitDone {
			t.Errorf("a healthy node with TLS, asked at %s: %d, %s", url, code, said)
		}
	}
	if code, _ := ask("http://[::1"); code != exitUsage {
		t.Errorf("no URL: %d", code)
	}
	if code, said := ask("tcp://" + server.Listener.Addr().String()); code != exitDone {
		t.Errorf("a port that listens: %d, %s", code, said)
	}
	if code, _ := ask("tcp://127.0.0.1:1"); code != exitFailed {
		t.Errorf("a port where nobody listens: %d", code)
	}
	answer = http.StatusServiceUnavailable
	if code, said := ask(server.URL); code != exitFailed || !strings.Contains(said, "503") || !strings.Contains(said, "a reason") {
		t.Errorf("an unready server: %d, %s", code, said)
	}
	if code, _ := ask("http://127.0.0.1:1/"); code != exitFailed {
		t.Errorf("no server: %d", code)
	}
}

func TestATokenIsWhatItWasAskedToBe(t *testing.T) {
	_, out, _ := exec(t, map[string]string{"HOLDFAST_API_KEYS": goodKeys}, "token", "--identity", "ada", "--room", "blue", "--subscribe-only", "--metadata", "seven", "--attribute", "team=blue", "--attribute", "seat=7")
	keys, err := access.ParseKeyring(goodKeys)
	if err != nil {
		t.Fatal(err)
	}
	grant, err := keys.Verify(strings.TrimSpace(out))
	want := access.Grant{Identity: "ada", Name: "ada", Room: "blue", RoomJoin: true, CanSubscribe: true, Metadata: "seven", Attributes: map[string]string{"team": "blue", "seat": "7"}}
	want.Key, want.Expires = grant.Key, grant.Expires
	if err != nil || !reflect.DeepEqual(grant, want) || grant.Key != "app" {
		t.Errorf("token %q grants %+v, %v; want %+v", out, grant, err, want)
	}
}

func TestATokensGrantsAreThoseOfItsFlags(t *testing.T) {
	keys, err := access.ParseKeyring(goodKeys)
	if err != nil {
		t.Fatal(err)
	}
	for flags, want := range map[string]access.Grant{
		"--room blue --admin":  {Room: "blue", RoomAdmin: true, CanPublish: true, CanPublishData: true},
		"--admin":              {RoomAdmin: true, RoomList: true, ClusterAdmin: true, CanPublish: true, CanPublishData: true},
		"--room blue --create": {Room: "blue", RoomCreate: true, CanPublish: true, CanPublishData: true},
		"--room blue --hidden": {Room: "blue", Hidden: true},
		"--room blue --source=microphone,screen_share": {
			Room: "blue", CanPublish: true, Sources: access.Microphone | access.Screen, CanPublishData: true,
		},
		"--source=screen_share_audio": {CanPublish: true, Sources: access.ScreenAudio, CanPublishData: true},
	} {
		code, out, said := exec(t, map[string]string{"HOLDFAST_API_KEYS": goodKeys}, append([]string{"token", "--identity", "ada"}, strings.Fields(flags)...)...)
		got, err := keys.Verify(strings.TrimSpace(out))
		want.Identity, want.Name, want.RoomJoin, want.CanSubscribe = "ada", "ada", true, true
		want.Key, want.Expires = got.Key, got.Expires
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("token %s: exit %d %s grants %+v, %v; want %+v", flags, code, said, got, err, want)
		}
	}
	for _, flags := range []string{"--source=smell"} {
		if code, _, said := exec(t, map[string]string{"HOLDFAST_API_KEYS": goodKeys}, "token", "--identity", "ada", flags); code == 0 || !strings.Contains(said, "--source") {
			t.Errorf("token %s: exit %d %s", flags, code, said)
		}
	}
}
