package load

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/child"
	"github.com/holdfast-rtc/holdfast/internal/testkit"
	"github.com/holdfast-rtc/holdfast/internal/tool"
	"github.com/holdfast-rtc/holdfast/lab/devcluster"
	"github.com/holdfast-rtc/holdfast/lab/peer"
)

// startPrometheus scrapes all nodes of the cluster each second, under the rules of docs/monitoring.
func startPrometheus(t *testing.T, c *devcluster.Cluster) *testkit.Prometheus {
	t.Helper()
	status, err := c.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var targets []string
	for _, node := range status.Nodes {
		if at := node.Addresses[child.AddressMetrics]; at != "" {
			targets = append(targets, at)
		}
	}
	rules, err := filepath.Abs("../../docs/monitoring/alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	config, err := json.Marshal(map[string]any{
		"global":     map[string]any{"scrape_interval": "1s", "evaluation_interval": "1s"},
		"rule_files": []string{rules},
		"scrape_configs": []any{map[string]any{
			"job_name": "holdfast", "static_configs": []any{map[string]any{"targets": targets}},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return testkit.StartPrometheus(t, string(config))
}

// moving are series that are not 0 after people were in rooms, and one media node died.
func moving() []string {
	return []string{
		`build_info`, `cluster_settled`, `media_nodes{state="up"}`, `signaling_nodes`, `store_seconds_count{operation="swap_pin"}`, `rooms`, `rooms_serving`, `rooms_opened_total`, `peers`,
		`egress_bits_per_second`, `egress_packets_per_second`, `egress_ceiling_bits_per_second`, `egress_ceiling_packets_per_second`, `egress_floor_bits_per_second`, `watchers`,
		`egress_packets_total`, `egress_bytes_total`, `egress_calls_total`, `packets_in_total`, `packets_forwarded_total`, `plis_sent_total`, `uplink_packets_expected_total`,
		`media_connections{transport="udp"}`, `media_connect_seconds_count`, `slots{shows="sound"}`, `slots{shows!="sound"}`, `round_trip_mean_seconds`, `downlink_connections{loss="under_1"}`,
		`placements_total{result="claimed"}`, `placements_total{result="found"}`, `placement_seconds_count`, `rehomings_total{cause="node_dead"}`, `node_deaths_total{evidence="proof"}`,
		`node_detection_seconds_count{evidence="proof"}`, `nodes_dead{role="sfu"}`, `rehoming_seconds_count`, `joins_total{kind="join",code="ok"}`, `join_seconds_count{phase="place"}`,
		`join_seconds_count{phase="attach"}`, `join_seconds_count{phase="whole"}`, `gap_seconds_count`, `session_ends_total`, `sockets`, `presence_connections`,
	}
}

// mayBeEmpty are the queries of the dashboard that have no result when nothing was lost or nobody reported.
func mayBeEmpty(query string) bool { return strings.Contains(query, "downlink_connections") }

// checkDashboard runs every query of the Grafana dashboard.
func checkDashboard(t *testing.T, p *testkit.Prometheus) {
	t.Helper()
	text, err := os.ReadFile("../../docs/monitoring/grafana.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	queries := 0
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			queries++
			expression := strings.NewReplacer("$job", "holdfast", "$__rate_interval", "1m").Replace(target.Expr)
			got, err := p.Query(t.Context(), expression)
			if err != nil || len(got) == 0 && !mayBeEmpty(expression) {
				t.Errorf("%s: %s has %d results (%v)", panel.Title, expression, len(got), err)
			}
		}
	}
	if queries < 40 {
		t.Errorf("the dashboard has %d queries: the test does not see them", queries)
	}
}

// seriesOf is how many samples the last scrape of each process had.
func seriesOf(t *testing.T, p *testkit.Prometheus) map[string]float64 {
	t.Helper()
	got, err := p.Query(t.Context(), `scrape_samples_post_metric_relabeling`)
	if err != nil {
		t.Fatal(err)
	}
	series := map[string]float64{}
	for _, s := range got {
		series[s.Metric["instance"]] = s.Number()
	}
	return series
}

// TestPrometheusReadsACluster has a real Prometheus scrape a cluster while people are in rooms and their media node dies: every documented
// metric is there, what should move does, every query of the dashboard has a result, and the alert for a dead node fires and clears.
func TestPrometheusReadsACluster(t *testing.T) {
	tool.Find(t, "prometheus")
	c := startCluster(t, devcluster.Options{SFU: 3, Signaling: 2})
	p := startPrometheus(t, c)
	const alert = `ALERTS{alertname="HoldfastNodeDead",alertstate="firing"}`
	p.Until(t, `count(up == 1) == 6`, true)
	p.Until(t, alert, false)

	o := optionsFor(t, c)
	o.Video, o.Rooms, o.Peers, o.Duration = peer.VideoLight, 6, 2, 12*time.Second
	loaded := make(chan *Report, 1)
	go func() { loaded <- run(t.Context(), t, o) }()
	p.Until(t, `sum(holdfast_peers) >= 12`, true)
	p.Until(t, `sum(holdfast_downlink_connections) > 0`, true)
	killed := busiest(t, c)
	if err := c.Kill(t.Context(), killed, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	p.Until(t, alert, true)
	<-loaded
	testkit.Eventually(t, "the terminal of the cluster to tell the failover", func() bool {
		return strings.Contains(c.Output(), ": "+killed+" died (killed: ") && strings.Contains(c.Output(), "2 of 2 back, worst ")
	})
	p.Until(t, `sum(holdfast_sockets) == 0`, true)
	if _, err := c.StartNode(t.Context(), killed); err != nil {
		t.Fatal(err)
	}
	p.Until(t, alert, false)

	p.HasDocumented(t, "../../docs/METRICS.md")
	checkDashboard(t, p)
	for _, series := range moving() {
		if got, err := p.Query(t.Context(), `max_over_time(holdfast_`+series+`[10m]) > 0`); err != nil || len(got) == 0 {
			t.Errorf("holdfast_%s is 0 (%v)", series, err)
		}
	}
}

// busiest is the media node with most rooms.
func busiest(t *testing.T, c *devcluster.Cluster) string {
	t.Helper()
	rooms, err := c.RoomsAt(t.Context(), c.URL())
	if err != nil || len(rooms) == 0 {
		t.Fatalf("%d rooms are open (%v)", len(rooms), err)
	}
	of := map[string]int{}
	for _, room := range rooms {
		of[string(room.Node)]++
	}
	return slices.MaxFunc(slices.Sorted(maps.Keys(of)), func(a, b string) int { return of[a] - of[b] })
}

// TestSeriesAreBounded: with 1,000 rooms and people no process has more series than with one, but for codes, operations and reasons that
// it had not met.
func TestSeriesAreBounded(t *testing.T) {
	tool.Find(t, "prometheus")
	large, unlimited := []string{"HOLDFAST_EGRESS_BITS=1000000000000", "HOLDFAST_EGRESS_PACKETS=1000000000"}, []string{"HOLDFAST_LIMIT_ADDRESS=off", "HOLDFAST_LIMIT_IDENTITY=off"}
	c := startCluster(t, devcluster.Options{SFU: 2, Signaling: 1, NodeEnv: map[string][]string{"sfu-1": large, "sfu-2": large, "signaling-1": unlimited}})
	p := startPrometheus(t, c)
	o := optionsFor(t, c)
	o.Video, o.Rooms, o.Peers, o.Duration = peer.VideoNone, 1, 1, 2*time.Second
	run(t.Context(), t, o)
	p.Until(t, `sum(holdfast_sockets) == 0 and count(up == 1) == 4`, true)
	before := seriesOf(t, p)

	o.Rooms, o.JoinsPerSecond, o.Duration, o.Seed = 1000, 200, 5*time.Second, 2
	if report := run(t.Context(), t, o); report.People.Joined < 1000 {
		t.Fatalf("%d of 1000 people joined", report.People.Joined)
	}
	p.Until(t, `max_over_time(holdfast_peers[5m]) > 100`, true)
	const unmet = 250
	for instance, series := range seriesOf(t, p) {
		t.Logf("%s has %v series, and had %v", instance, series, before[instance])
		if series > 1000 || series > before[instance]+unmet {
			t.Errorf("%s has %v series with 1,000 rooms, and had %v", instance, series, before[instance])
		}
	}
}

// TestAlertRules has promtool check the rules and run their tests.
func TestAlertRules(t *testing.T) {
	promtool := tool.Find(t, "promtool")
	for _, arguments := range [][]string{
		{"check", "rules", "../../docs/monitoring/alerts.yml"}, {"check", "config", "../../docs/monitoring/prometheus.yml"}, {"test", "rules", "../../docs/monitoring/alerts_test.yml"},
	} {
		if said, err := exec.CommandContext(t.Context(), promtool, arguments...).CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(arguments, " "), err, said)
		}
	}
	rules, err := os.ReadFile("../../docs/monitoring/alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	tests, err := os.ReadFile("../../docs/monitoring/alerts_test.yml")
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range regexp.MustCompile(`alert: (\w+)`).FindAllStringSubmatch(string(rules), -1) {
		if !regexp.MustCompile(`alertname: ` + rule[1] + `\n\s+exp_alerts:`).Match(tests) {
			t.Errorf("no test has the alert %s fire", rule[1])
		}
	}
}
