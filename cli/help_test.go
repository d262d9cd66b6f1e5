package cli

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	osexec "os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/holdfast-rtc/holdfast/internal/readiness"
)

// modelOf is the model of the command line.
func modelOf(t *testing.T) *kong.Application {
	t.Helper()
	var root commands
	parser, err := newParser(&root, streams{out: io.Discard, err: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	return parser.Model
}

// typed runs a command line.
func typed(t *testing.T, line string) (code int, out, said string) {
	t.Helper()
	return exec(t, nil, strings.Fields(line)...)
}

// TestHelpIsOnePage however it is asked for, with every verb in a group.
func TestHelpIsOnePage(t *testing.T) {
	var pages []string
	for _, line := range []string{"", "help", "-h", "--help"} {
		code, out, said := typed(t, line)
		if pages = append(pages, out); code != exitDone || said != "" || out != pages[0] {
			t.Errorf("%q: exit code %d, %s%s", line, code, out, said)
		}
	}
	for _, verb := range modelOf(t).Children {
		if !verb.Hidden && !strings.Contains(pages[0], "\n  "+verb.Name+" ") {
			t.Errorf("%s is not on the page; give it a group", verb.Name)
		}
		if verb.Hidden && strings.Contains(pages[0], "\n  "+verb.Name+" ") {
			t.Errorf("%s is on the page", verb.Name)
		}
	}
	for row := range strings.SplitSeq(pages[0], "\n") {
		if len(row) > 125 {
			t.Errorf("the page is too wide: %s", row)
		}
	}
}

func TestHelpOfAVerb(t *testing.T) {
	for line, want := range map[string]string{
		"help explain":      "explain <room> [flags]",
		"explain -h":        "Arguments:",
		"help keys":         "  use          Put the last",
		"help keys drop":    "keys drop <file> [flags]",
		"help help":         "Look at a cluster",
		"explain --help":    "explain <room> [flags]",
		"nodes --json help": "", // not asked for
	} {
		code, out, _ := typed(t, line)
		if want != "" && (code != exitDone || !strings.Contains(out, want)) || want == "" && code != exitUsage {
			t.Errorf("%s: exit code %d\n%s", line, code, out)
		}
	}
}

func TestWrongUsageSaysWhatToType(t *testing.T) {
	for line, want := range map[string][]string{
		"explain":        {"an argument is missing: <room>", "Usage: holdfast explain <room> [flags]", "'holdfast help explain'"},
		"nodez":          {`did you mean "nodes"?`, "'holdfast help' says more"},
		"help nodez":     {`did you mean "nodes"?`},
		"nodes --jsn":    {`did you mean "--json"?`, "Usage: holdfast nodes"},
		"keys shw f":     {`did you mean one of "new", "show"?`, "'holdfast help keys'"},
		"completion csh": {"bash"},
		"xyzzy":          {"unexpected argument xyzzy"},
	} {
		code, out, said := typed(t, line)
		if code != exitUsage || out != "" {
			t.Errorf("%s: exit code %d, %s", line, code, out)
		}
		for _, piece := range want {
			if !strings.Contains(said, piece) {
				t.Errorf("%s: no %q in\n%s", line, piece, said)
			}
		}
	}
	for pair, want := range map[[2]string]int{{"kill", "kill"}: 0, {"kil", "kill"}: 1, {"", "abc"}: 3, {"status", "sattus"}: 2, {"drain", "undrain"}: 2} {
		if got := distance(pair[0], pair[1]); got != want {
			t.Errorf("%v: %d, want %d", pair, got, want)
		}
	}
}

func TestCompletions(t *testing.T) {
	names := func(argument string) []string {
		if argument == "shell" {
			return nil
		}
		return []string{"a-" + argument}
	}
	for line, want := range map[string]string{
		"no":                  "nodes",
		"und":                 "undrain",
		"hel":                 "help",
		"help dra":            "drain",
		"keys ":               "drop new show use",
		"nodes --jso":         "--json",
		"nodes --ur":          "", // it has one name
		"ring --format ":      "svg text",
		"completion ":         "bash fish zsh",
		"ring --nodes ":       "",
		"compl":               "completion", // complete is hidden
		"explain ":            "a-room",
		"explain hall ":       "",
		"move hall ":          "a-node",
		"move --json hall a":  "a-node",
		"dev kill ":           "a-name",
		"signaling --log-l":   "--log-level",
		"token --subscribe-o": "--subscribe-only",
	} {
		if got := strings.Join(completions(modelOf(t).Node, strings.Split(line, " "), names), " "); got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
	if code, out, _ := typed(t, "complete -- nodes --js"); code != exitDone || out != "--json\n" {
		t.Errorf("exit code %d: %q", code, out)
	}
}

// TestNamesComplete as the cluster has them, but no room that a stranger named to have a shell run it.
func TestNamesComplete(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := `{"nodes":[{"node":"sfu-1","role":"sfu"},{"node":"sfu-2","role":"sfu","state":"dead"},{"node":"signaling-1","role":"signaling"}]}`
		if strings.HasSuffix(r.URL.Path, "/room-list") {
			answer = `{"rooms":[{"room":"hall"},{"room":"$(reboot)"},{"room":"-rf"},{"room":"a b"},{"room":"küche"}]}`
		}
		_, _ = io.WriteString(w, answer)
	}))
	defer server.Close()
	t.Setenv("HOLDFAST_SERVER", server.URL)
	t.Setenv("HOLDFAST_TOKEN", "x")
	for words, want := range map[string]string{"drain s": "sfu-1\n", "explain": "explain\n", "move hall sf": "sfu-1\n", "explain ": "hall\nküche\n"} {
		var out strings.Builder
		line := append([]string{"complete", "--"}, strings.Split(words, " ")...)
		if run(t.Context(), line, streams{in: strings.NewReader(""), out: &out, err: io.Discard}); out.String() != want {
			t.Errorf("%q: %q, want %q", words, out.String(), want)
		}
	}
	http.DefaultClient.CloseIdleConnections()
}

// TestBashCompletes: bash runs the script, which asks for the words.
func TestBashCompletes(t *testing.T) {
	_, script, _ := typed(t, "completion bash")
	const ask = "\nholdfast() { printf '%s\\n' \"$@\"; }\nCOMP_WORDS=(holdfast keys us); COMP_CWORD=2; _holdfast; printf '%s,' \"${COMPREPLY[@]}\"; complete -p holdfast"
	out, err := osexec.Command("bash", "-c", script+ask).CombinedOutput()
	if want := "complete,--,keys,us,complete -o default -F _holdfast holdfast\n"; err != nil || string(out) != want {
		t.Errorf("%v: %q, want %q", err, out, want)
	}
	for shell, want := range map[string]string{"zsh": "#compdef holdfast", "fish": "complete -c holdfast"} {
		if _, out, _ := typed(t, "completion "+shell); !strings.Contains(out, want) {
			t.Errorf("%s: %s", shell, out)
		}
	}
}

// TestVerbsFindTheNodeOfTheirContainer without a server, a development cluster or a directory for one.
func TestVerbsFindTheNodeOfTheirContainer(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == readiness.Path {
			w.Header().Set(readiness.SocketsHeader, "0")
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, `{"rooms":[]}`)
	}))
	defer server.Close()
	address := strings.TrimPrefix(server.URL, "http://")
	env := map[string]string{"XDG_RUNTIME_DIR": "/nowhere", "HOLDFAST_API_KEYS": goodKeys, "HOLDFAST_LISTEN": address}
	for key, value := range env {
		t.Setenv(key, value)
	}
	var out, said strings.Builder
	if code := run(t.Context(), []string{"rooms"}, streams{in: strings.NewReader(""), out: &out, err: &said}); code != exitDone || out.String() != "No room is open.\n" {
		t.Errorf("exit code %d: %s%s", code, out.String(), said.String())
	}
	t.Setenv("HOLDFAST_LISTEN", "127.0.0.1:1")
	first := strings.Join([]string{"/holdfast", "signaling", "--name", "signaling-1", "--listen", address, "--api-keys-file", "/keys/api-keys", ""}, "\x00")
	if own, err := findOwnNode(t.Context(), first); err != nil || own.url != server.URL || own.keys.APIKeysFile != "/keys/api-keys" {
		t.Errorf("%+v, %v", own, err)
	}
	for _, other := range []string{"", "/sbin/init\x00", "/holdfast\x00sfu\x00"} {
		if own, err := findOwnNode(t.Context(), other); err == nil || !strings.Contains(err.Error(), "127.0.0.1:1") {
			t.Errorf("%q: %+v, %v", other, own, err)
		}
	}
	// On a shared machine anybody could listen at the usual port.
	t.Setenv("HOLDFAST_LISTEN", "")
	if own, err := findOwnNode(t.Context(), "/sbin/init\x00"); !errors.Is(err, errNoOwnNode) {
		t.Errorf("%+v, %v", own, err)
	}
}

// TestWhoHasNoClusterIsToldHowToGetOne in one sentence.
func TestWhoHasNoClusterIsToldHowToGetOne(t *testing.T) {
	env := map[string]string{"XDG_RUNTIME_DIR": t.TempDir(), "HOLDFAST_LISTEN": "127.0.0.1:1"}
	code, _, said := exec(t, env, "explain", "hall")
	const want = "holdfast explain: no development cluster is running, and no signaling node answers at 127.0.0.1:1: name one with --server, or start a cluster with 'holdfast dev'\n"
	if code != exitUsage || said != want {
		t.Errorf("exit code %d: %s", code, said)
	}
	if code, _, said := exec(t, env, "dev", "status"); code != exitFailed || said != "holdfast dev status: no development cluster is running; start one with: holdfast dev\n" {
		t.Errorf("exit code %d: %s", code, said)
	}
}

// TestOneFlagNamesTheServer of every verb that asks one; its former name still works.
func TestOneFlagNamesTheServer(t *testing.T) {
	for _, verb := range modelOf(t).Children {
		for _, flag := range flagsOf(verb) {
			if flag.Name == "url" || flag.Name == "server" && !slices.Contains(flag.Aliases, "url") {
				t.Errorf("%s has --%s with the aliases %v", verb.Name, flag.Name, flag.Aliases)
			}
		}
	}
	if got := asked(t, `{"rooms":[]}`, "rooms"); got != "No room is open.\n" {
		t.Errorf("--server: %q", got)
	}
	if code, _, said := typed(t, "rooms --url http://127.0.0.1:1 --token x"); code != exitFailed || !strings.Contains(said, "127.0.0.1:1") {
		t.Errorf("--url: exit code %d, %s", code, said)
	}
}
