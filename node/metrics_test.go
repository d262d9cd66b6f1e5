package node

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/internal/metrics"
	"github.com/holdfast-rtc/holdfast/internal/panics"
	"github.com/holdfast-rtc/holdfast/internal/traces"
	"github.com/holdfast-rtc/holdfast/internal/webhook"
	"github.com/holdfast-rtc/holdfast/orchestrator"
	"github.com/holdfast-rtc/holdfast/sfu"
	"github.com/holdfast-rtc/holdfast/signaling"
)

// registered has the metrics of both roles. Nothing reads the nil nodes, because nobody scrapes.
func registered() []metrics.Metric {
	log, guard := slog.New(slog.DiscardHandler), panics.New()
	noView, noEvents := func() *cluster.View { return nil }, func() uint64 { return 0 }
	media := metrics.New("sfu", "sfu-1", guard, log)
	media.NewStore()
	sfu.NewMetrics(media)
	(*sfu.Node)(nil).Measure(media)
	measureCluster(media, noView, noEvents)
	clients := metrics.New("signaling", "signaling-1", guard, log)
	clients.NewStore()
	orchestrator.NewMetrics(clients)
	signaling.NewMetrics(clients)
	clients.NewFailover(func() int { return 0 })
	(*signaling.Server)(nil).Measure(clients, nil)
	measureCluster(clients, noView, noEvents)
	(*webhook.Sender)(nil).Measure(clients)
	(*traces.Tracer)(nil).Measure(clients)
	all := append(media.Metrics(), clients.Metrics()...)
	slices.SortFunc(all, func(a, b metrics.Metric) int { return strings.Compare(a.Name, b.Name) })
	return slices.CompactFunc(all, func(a, b metrics.Metric) bool { return a.Name == b.Name })
}

// metricRow is a row of docs/METRICS.md: name, type, labels, meaning.
var metricRow = regexp.MustCompile("(?m)^\\| `(holdfast_[a-z_]+)` \\| (counter|gauge|histogram) \\| ([^|]*) \\| ([^|]+) \\|")

// TestTheDocumentedMetricsAreThoseThatThereAre compares docs/METRICS.md with what the two roles register.
func TestTheDocumentedMetricsAreThoseThatThereAre(t *testing.T) {
	page, err := os.ReadFile("../docs/METRICS.md")
	if err != nil {
		t.Fatal(err)
	}
	type row struct{ kind, labels string }
	told := map[string]row{}
	for _, m := range metricRow.FindAllStringSubmatch(string(page), -1) {
		if _, twice := told[m[1]]; twice {
			t.Errorf("%s is documented twice", m[1])
		}
		told[m[1]] = row{m[2], strings.NewReplacer("`", "", " ", "").Replace(m[3])}
	}
	for _, m := range registered() {
		want := row{m.Type, strings.Join(m.Labels, ",")}
		if got, ok := told[m.Name]; !ok {
			t.Errorf("not in docs/METRICS.md: | `%s` | %s | %s | %s |", m.Name, m.Type, strings.Join(m.Labels, ","), m.Help)
		} else if got != want {
			t.Errorf("%s is documented as %v, and is %v", m.Name, got, want)
		}
		delete(told, m.Name)
	}
	for name := range told {
		t.Errorf("docs/METRICS.md has %s, which no node registers", name)
	}
}

// TestEveryNameFollowsTheConventions: a counter ends in _total, a histogram has its unit, and no label names what is unbounded.
func TestEveryNameFollowsTheConventions(t *testing.T) {
	for _, m := range registered() {
		if counts := strings.HasSuffix(m.Name, "_total"); counts != (m.Type == "counter") {
			t.Errorf("%s is a %s", m.Name, m.Type)
		}
		if m.Type == "histogram" && !strings.HasSuffix(m.Name, "_seconds") {
			t.Errorf("%s has no unit", m.Name)
		}
		for _, label := range m.Labels {
			if slices.Contains([]string{"room", "user", "identity", "peer", "address", "ip"}, label) {
				t.Errorf("%s has the label %s, of which there is no bound", m.Name, label)
			}
		}
		if m.Help == "" || !strings.HasSuffix(m.Help, ".") {
			t.Errorf("%s has the help %q, want a sentence", m.Name, m.Help)
		}
	}
}

func TestMetricsListenTakesAPortOfLoopback(t *testing.T) {
	for given, want := range map[string]string{"": "", "7984": "127.0.0.1:7984", ":7984": ":7984", "[::1]:7984": "[::1]:7984"} {
		f := metricsFlag{MetricsListen: given}
		if got := f.address(); got != want || f.checkMetrics() != nil {
			t.Errorf("%q is %q (%v), want %q", given, got, f.checkMetrics(), want)
		}
	}
	for _, wrong := range []string{"79840", "here", "-1"} {
		if (metricsFlag{MetricsListen: wrong}).checkMetrics() == nil {
			t.Errorf("%q is accepted", wrong)
		}
	}
}

// TestMetricsAreServedAndAPanicOfAReadingIsCaught scrapes a registry by HTTP.
func TestMetricsAreServedAndAPanicOfAReadingIsCaught(t *testing.T) {
	guard := panics.New()
	r := metrics.New("sfu", "sfu-1", guard, slog.New(slog.DiscardHandler))
	metrics.Read(r, func() int { panic("a reading breaks") }, metrics.Reading[int]{Name: "broken", Help: "Never.", Value: func(n int) float64 { return float64(n) }})
	listener, err := (metricsFlag{MetricsListen: "0"}).listenMetrics(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Serve(ctx, listener, nil) }()
	page := scrape(t, listener.Addr())
	if !strings.Contains(page, `holdfast_build_info{commit="`) || !strings.Contains(page, "go_goroutines") || strings.Contains(page, "holdfast_broken ") {
		t.Errorf("the scrape says\n%s", page)
	}
	if guard.Count() != 1 {
		t.Errorf("%d panics are counted, want 1", guard.Count())
	}
	end()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func scrape(t *testing.T, at net.Addr) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+at.String()+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	page, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%s (%v)", answer.Status, err)
	}
	return string(page)
}
