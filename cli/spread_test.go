package cli

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestSpreadAndGatherAskTheCluster(t *testing.T) {
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked = append(asked, r.Method+" "+r.URL.Path+" "+string(body))
		_, _ = io.WriteString(w, `{"room":"hall","owner":"sfu-1","branches":["sfu-2"]}`)
	}))
	defer http.DefaultClient.CloseIdleConnections()
	defer server.Close()
	for line, want := range map[string]string{
		"spread hall sfu-2":  "hall: its owner sfu-1 has another node carry some of its people. 'explain' shows where they are.\n",
		"gather hall":        "hall: its owner sfu-1 takes its people back. 'explain' shows where they are.\n",
		"gather hall --json": "\"branches\": [",
	} {
		var out, said strings.Builder
		code := run(t.Context(), append(strings.Fields(line), "--server", server.URL, "--token", "x"), streams{in: strings.NewReader(""), out: &out, err: &said})
		if code != exitDone || !strings.Contains(out.String(), want) {
			t.Errorf("%s: exit code %d: %s%s", line, code, out.String(), said.String())
		}
	}
	if got := strings.Join(asked, "\n"); !strings.Contains(got, `POST /api/v1/rooms/hall/spread {"node":"sfu-2"}`) || !strings.Contains(got, `POST /api/v1/rooms/hall/gather {"node":""}`) {
		t.Errorf("asked %s", got)
	}
}
