package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// drainServer answers the questions of a drain, the last answer for ever.
type drainServer struct {
	*httptest.Server

	mu      sync.Mutex
	answers []string // STATUS BODY
	asked   []string
}

func newDrainServer(t *testing.T, answers ...string) *drainServer {
	d := &drainServer{answers: answers}
	d.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d.mu.Lock()
		defer d.mu.Unlock()
		body, _ := io.ReadAll(r.Body)
		d.asked = append(d.asked, r.Method+" "+r.URL.RequestURI()+" "+string(body))
		var status int
		fmt.Sscan(d.answers[0], &status)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, d.answers[0][3:])
		if len(d.answers) > 1 {
			d.answers = d.answers[1:]
		}
	}))
	t.Cleanup(func() {
		d.Server.Close()
		http.DefaultClient.CloseIdleConnections()
	})
	return d
}

func (d *drainServer) run(t *testing.T, line string) (code int, out, said string) {
	t.Helper()
	var stdout, stderr strings.Builder
	args := append(strings.Fields(line), "--server", d.URL, "--token", "x")
	code = run(t.Context(), args, streams{in: strings.NewReader(""), out: &stdout, err: &stderr})
	return code, stdout.String(), stderr.String()
}

// TestDrainFollowsTheNodeToItsEnd with a line for each change, and says how long it took.
func TestDrainFollowsTheNodeToItsEnd(t *testing.T) {
	d := newDrainServer(
		t, `200 {"node":"sfu-1","boot":"b","draining":true,"rooms":2,"peers":5}`,
		`200 {"node":"sfu-1","boot":"b","draining":false,"rooms":2,"peers":5}`, // gossip is late
		`200 {"node":"sfu-1","boot":"b","draining":true,"rooms":2,"peers":5,"staying":[{"room":"blue","reason":"No headroom."}]}`,
		`200 {"node":"sfu-1","boot":"b","draining":true,"overdue":true,"rooms":1,"peers":2,"unreachable":["signaling-2"]}`,
		`502 a balancer's page`,
		`200 {"node":"sfu-1","boot":"b","gone":"left"}`)
	code, out, said := d.run(t, "drain sfu-1 --deadline 30s")
	const want = `sfu-1: 2 rooms with 5 people left
sfu-1: 2 rooms with 5 people left; blue stays: No headroom
sfu-1: 1 room with 2 people left; signaling-2 did not say which rooms stay (past the deadline: by restarts)
`
	if code != exitDone || said != want || !strings.HasPrefix(out, "sfu-1 is empty and has ended: 2 rooms with 5 people moved in ") || !strings.Contains(out, "--keep") {
		t.Errorf("exit code %d\n%s\n%s", code, out, said)
	}
	if d.asked[0] != `POST /api/v1/nodes/sfu-1/drain {"deadlineMs":30000,"keep":false}` || d.asked[1] != "GET /api/v1/nodes/sfu-1/drain?boot=b " {
		t.Errorf("asked: %q", d.asked)
	}
}

func TestDrainSaysHowElseItEnds(t *testing.T) {
	const begun = `200 {"node":"sfu-1","boot":"b","draining":true,"rooms":1,"peers":5}`
	for name, row := range map[string]struct {
		line    string
		answers []string
		code    int
		says    string
	}{
		"kept":        {"drain sfu-1 --keep", []string{begun, `200 {"boot":"b","draining":true}`}, exitDone, "It stays, draining"},
		"none":        {"drain sfu-9", []string{`404 {"message":"No media node named sfu-9 is up; there are sfu-1."}`}, exitFailed, "drain: No media node named sfu-9 is up; there are sfu-1.\n"},
		"dead":        {"drain sfu-1", []string{begun, `200 {"boot":"b","gone":"dead"}`}, exitFailed, "ended before it was empty"},
		"replaced":    {"drain sfu-1", []string{begun, `200 {"boot":"c"}`}, exitFailed, "ended before it was empty"},
		"undone":      {"drain sfu-1", []string{begun, begun, `200 {"boot":"b","rooms":1}`}, exitFailed, "was undone"},
		"forgotten":   {"drain sfu-1", []string{begun, `200 {"boot":"b","draining":true}`, `404 {"message":"No media node"}`}, exitDone, "has ended"},
		"foolish":     {"drain sfu-1 --deadline 25h", []string{begun}, exitUsage, "not between"},
		"undrained":   {"undrain sfu-1", []string{`200 {"boot":"b","rooms":1,"peers":2}`}, exitDone, "sfu-1 takes rooms again; it has 1 room with 2 people."},
		"not drained": {"undrain sfu-1", []string{`409 {"code":"not_draining","message":"sfu-1 is not draining: it takes rooms."}`}, exitFailed, "is not draining"},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, said := newDrainServer(t, row.answers...).run(t, row.line)
			if code != row.code || !strings.Contains(out+said, row.says) {
				t.Errorf("exit code %d, want %d and %q\n%s%s", code, row.code, row.says, out, said)
			}
		})
	}
	_, out, _ := newDrainServer(t, begun, `200 {"boot":"b","gone":"left"}`).run(t, "drain sfu-1 --json")
	var summary map[string]any
	if json.Unmarshal([]byte(out), &summary) != nil || summary["rooms"] != 1.0 || summary["ended"] != true {
		t.Errorf("as JSON: %s", out)
	}
}
