package metrics_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/metrics"
	"github.com/holdfast-rtc/holdfast/internal/panics"
)

func registry() *metrics.Registry {
	return metrics.New("signaling", "signaling-1", panics.New(), slog.New(slog.DiscardHandler))
}

func scrape(t testing.TB, r *metrics.Registry) string {
	t.Helper()
	answer := httptest.NewRecorder()
	r.Handler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if answer.Code != http.StatusOK {
		t.Fatalf("%d: %s", answer.Code, answer.Body)
	}
	return answer.Body.String()
}

// TestADeadNodeIsCountedUntilItIsBack: whoever learns of a death counts it, and forgets it when a node of that name joins.
func TestADeadNodeIsCountedUntilItIsBack(t *testing.T) {
	r := registry()
	f := r.NewFailover(func() int { return 3 })
	f.Died("sfu-1", "sfu", metrics.EvidenceProof)
	f.Died("sfu-2", "sfu", metrics.EvidenceGossip)
	f.Died("sfu-2", "sfu", metrics.EvidenceTold)
	f.Gone("sfu-1")
	page := scrape(t, r)
	for _, line := range []string{
		`holdfast_nodes_dead{role="sfu"} 1`, `holdfast_nodes_dead{role="signaling"} 0`, `holdfast_node_deaths_total{evidence="proof"} 1`,
		`holdfast_node_deaths_total{evidence="gossip"} 1`, `holdfast_node_deaths_total{evidence="told"} 1`, `holdfast_rehomings_active 3`,
	} {
		if !strings.Contains(page, "\n"+line+"\n") {
			t.Errorf("the scrape lacks %s", line)
		}
	}
}

// TestPartsThatNobodyRegisteredDoNothing: tests and tools hand none over.
func TestPartsThatNobodyRegisteredDoNothing(*testing.T) {
	var r *metrics.Registry
	p, f, s, c, m := r.NewPlacement(nil, nil, nil), r.NewFailover(nil), r.NewStore(), r.NewClients(), r.NewMedia(nil)
	for _, use := range uses(p, f, s, c, m) {
		use()
	}
}

func uses(p *metrics.Placement, f *metrics.Failover, s *metrics.Store, c *metrics.Clients, m *metrics.Media) map[string]func() {
	return map[string]func(){
		"placed":    func() { p.Placed(metrics.PlacementFound, time.Millisecond) },
		"failed":    func() { p.Failed("no_nodes") },
		"rehomed":   func() { p.Rehomed("node_dead") },
		"moved":     func() { p.Moved("drain") },
		"detected":  func() { f.Detected(metrics.EvidenceProof, time.Millisecond) },
		"room":      func() { f.Rehomed(time.Millisecond) },
		"delayed":   f.Delayed,
		"called":    func() { s.Called("get", time.Millisecond, false) },
		"joined":    func() { c.Joined("join", metrics.CodeOK) },
		"took":      func() { c.JoinTook(metrics.JoinAnswered, time.Millisecond) },
		"gap":       func() { c.Gap("restart", time.Millisecond) },
		"way":       func() { c.Way(metrics.WayTCP) },
		"stalled":   c.Stalled,
		"ended":     func() { c.Ended("1000") },
		"connected": func() { m.Connected(time.Millisecond) },
		"refused":   func() { m.Refused("fenced") },
		"opened":    m.Opened,
		"drained":   m.Drained,
	}
}

func registered() map[string]func() {
	r := registry()
	return uses(r.NewPlacement([]string{"no_nodes"}, []string{"node_dead"}, []string{"drain"}), r.NewFailover(func() int { return 0 }), r.NewStore(), r.NewClients("restart"), r.NewMedia([]string{"fenced"}))
}

// TestCountingAllocatesNothing: a count costs a join, or a call to the store, no memory.
func TestCountingAllocatesNothing(t *testing.T) {
	for name, use := range registered() {
		use()
		if allocated := testing.AllocsPerRun(200, use); allocated > 0 {
			t.Errorf("%s allocates %v times", name, allocated)
		}
	}
}

// BenchmarkCount is one count of a counter, and one of a histogram.
func BenchmarkCount(b *testing.B) {
	all := registered()
	for _, name := range []string{"joined", "took", "called"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				all[name]()
			}
		})
	}
}
