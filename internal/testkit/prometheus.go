package testkit

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/tool"
)

// Prometheus is a real one, which runs until the test ends.
type Prometheus struct{ at string }

// StartPrometheus gives it the configuration, as YAML or JSON. Paths in the configuration are absolute.
func StartPrometheus(t testing.TB, config string) *Prometheus {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	_, at := SilentAndRefused(t)
	process := exec.Command(tool.Find(t, "prometheus"), "--config.file="+file, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+at, "--log.level=warn") //nolint:gosec // of a test
	var said strings.Builder
	process.Stdout, process.Stderr = &said, &said
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = process.Process.Signal(syscall.SIGKILL)
		_ = process.Wait()
		if t.Failed() {
			t.Logf("Prometheus says\n%s", said.String())
		}
	})
	return &Prometheus{at: at}
}

// Sample is one series of an answer.
type Sample struct {
	Metric map[string]string `json:"metric"`
	Value  [2]any            `json:"value"`
}

// Number is the sample's value.
func (s Sample) Number() float64 {
	text, _ := s.Value[1].(string)
	number, _ := strconv.ParseFloat(text, 64)
	return number
}

// Query returns the series that the expression has now.
func (p *Prometheus) Query(ctx context.Context, expression string) ([]Sample, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.at+"/api/v1/query?query="+url.QueryEscape(expression), nil)
	if err != nil {
		return nil, err
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 10 * time.Second}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	var answer struct {
		Status, Error string
		Data          struct{ Result []Sample }
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return nil, fmt.Errorf("%s: %w", expression, err)
	}
	if answer.Status != "success" {
		return nil, fmt.Errorf("%s: %s", expression, answer.Error)
	}
	return answer.Data.Result, nil
}

// Until waits until the expression has a result, or has none.
func (p *Prometheus) Until(t testing.TB, expression string, some bool) {
	t.Helper()
	Within(t, time.Minute, expression, func() error {
		got, err := p.Query(t.Context(), expression)
		if err == nil && (len(got) > 0) != some {
			err = fmt.Errorf("%s has %d results", expression, len(got))
		}
		return err
	})
}

var documentedMetric = regexp.MustCompile("(?m)^\\| `(holdfast_[a-z_]+)` \\| (counter|gauge|histogram) \\|")

// HasDocumented finds every metric of the page, which is docs/METRICS.md, in Prometheus.
func (p *Prometheus) HasDocumented(t testing.TB, page string) {
	t.Helper()
	text, err := os.ReadFile(page) //nolint:gosec // of a test
	if err != nil {
		t.Fatal(err)
	}
	got, err := p.Query(t.Context(), `count by (__name__) (last_over_time({__name__=~"holdfast_.+"}[10m]))`)
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	for _, s := range got {
		there[s.Metric["__name__"]] = true
	}
	rows := documentedMetric.FindAllStringSubmatch(string(text), -1)
	if len(rows) < 60 {
		t.Errorf("docs/METRICS.md has %d metrics: the test does not see them", len(rows))
	}
	for _, row := range rows {
		name := row[1]
		if row[2] == "histogram" {
			name += "_count"
		}
		if !there[name] {
			t.Errorf("Prometheus has no %s", name)
		}
	}
}
