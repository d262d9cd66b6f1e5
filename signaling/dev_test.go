package signaling

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/holdfast-rtc/holdfast/cluster"
)

// fakeKiller notes whom it was told to kill.
type fakeKiller struct{ killed []string }

func (k *fakeKiller) Kill(_ context.Context, node string) error {
	k.killed = append(k.killed, node)
	return nil
}

// kill asks the signaling node to kill a node, as a page does.
func (e *signalingNode) kill(node, host string, header bool) int {
	e.rig.t.Helper()
	request, err := http.NewRequest(http.MethodPost, "http://"+e.addr+"/api/v1/dev/kill?node="+node, http.NoBody)
	if err != nil {
		e.rig.t.Fatal(err)
	}
	if host != "" {
		request.Host = host
	}
	if header {
		request.Header.Set("X-Holdfast-Dev", "1")
	}
	transport := &http.Transport{DisableKeepAlives: true}
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport, Timeout: generous}).Do(request)
	if err != nil {
		e.rig.t.Fatal(err)
	}
	_ = response.Body.Close()
	return response.StatusCode
}

func TestOnlyDevKillsAndOnlyForThisMachine(t *testing.T) {
	r := newRig(t)
	for _, n := range []cluster.Node{
		{ID: "sfu-1", Role: cluster.RoleSFU}, {ID: "sfu-2", Role: cluster.RoleSFU}, {ID: "signaling-1", Role: cluster.RoleSignaling},
	} {
		r.views.add(n)
	}
	killer := &fakeKiller{}
	dev := r.signalingNodeWith(killer, func(c *Config) { c.Dev = true })
	for name, got := range map[string]int{
		"without the header": dev.kill("sfu-1", "", false),
		"by another name":    dev.kill("sfu-1", "evil.example", true),
	} {
		if got != http.StatusForbidden {
			t.Errorf("%s: %d", name, got)
		}
	}
	for _, node := range []string{"signaling-1", "store", ""} {
		if got := dev.kill(node, "", true); got != http.StatusNotFound {
			t.Errorf("kill %q: %d", node, got)
		}
	}
	if len(killer.killed) != 0 {
		t.Fatalf("killed %v", killer.killed)
	}
	if got := dev.kill("sfu-1", "", true); got != http.StatusOK || strings.Join(killer.killed, " ") != "sfu-1" {
		t.Fatalf("kill sfu-1: %d, killed %v", got, killer.killed)
	}
	if _, body, _ := dev.get("/api/v1/config", ""); !strings.Contains(body, `"kill":true`) {
		t.Errorf("config is %s", body)
	}
	for name, other := range map[string]*signalingNode{
		"production":       r.signalingNodeWith(killer, nil),
		"without a killer": r.signalingNodeWith(nil, func(c *Config) { c.Dev = true }),
	} {
		if got := other.kill("sfu-1", "", true); got != http.StatusNotFound && got != http.StatusMethodNotAllowed {
			t.Errorf("%s: %d", name, got)
		}
		if _, body, _ := other.get("/api/v1/config", ""); strings.Contains(body, "kill") {
			t.Errorf("%s: config is %s", name, body)
		}
	}
	if len(killer.killed) != 1 {
		t.Errorf("killed %v", killer.killed)
	}
}

func TestTheLastMediaNodeIsSpared(t *testing.T) {
	r := newRig(t)
	r.views.add(cluster.Node{ID: "sfu-1", Role: cluster.RoleSFU})
	killer := &fakeKiller{}
	if got := r.signalingNodeWith(killer, func(c *Config) { c.Dev = true }).kill("sfu-1", "", true); got != http.StatusConflict || len(killer.killed) != 0 {
		t.Errorf("%d, killed %v", got, killer.killed)
	}
}
