package testkit

import (
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Collector is an OpenTelemetry collector that keeps the spans it is sent by OTLP over HTTP.
type Collector struct {
	// URL is what --traces-url is given.
	URL string

	mu     sync.Mutex
	spans  []TracedSpan // guarded by mu
	status int          // guarded by mu
	asked  int          // guarded by mu
}

// TracedSpan is a span as a collector gets it. The ids are hexadecimal; Parent is empty for the root of a trace.
type TracedSpan struct {
	Trace, ID, Parent string
	Name              string
	// Process is the name of the node that sent it.
	Process    string
	Start, End time.Time
	// Attributes have their values as text, and Events are names.
	Attributes map[string]string
	Events     []string
	// Failure is the status of a failed span.
	Failure string
}

// NewCollector serves on the loopback interface until the test ends.
func NewCollector(t testing.TB) *Collector {
	t.Helper()
	c := &Collector{status: http.StatusOK}
	server := httptest.NewServer(http.HandlerFunc(c.take))
	t.Cleanup(server.Close)
	c.URL = server.URL
	return c
}

// Answer has the collector answer with the status. It keeps spans only with 200.
func (c *Collector) Answer(status int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.status = status
}

// Asked counts the requests.
func (c *Collector) Asked() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asked
}

// Spans returns those that have come, in order of their starts.
func (c *Collector) Spans() []TracedSpan {
	c.mu.Lock()
	defer c.mu.Unlock()
	spans := slices.Clone(c.spans)
	slices.SortStableFunc(spans, func(a, b TracedSpan) int { return a.Start.Compare(b.Start) })
	return spans
}

func (c *Collector) take(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var request collector.ExportTraceServiceRequest
	if err != nil || r.URL.Path != "/v1/traces" || proto.Unmarshal(body, &request) != nil {
		http.Error(w, "not OTLP", http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked++
	if c.status != http.StatusOK {
		w.WriteHeader(c.status)
		return
	}
	for _, process := range request.GetResourceSpans() {
		name := ""
		for _, a := range process.GetResource().GetAttributes() {
			if a.GetKey() == "service.instance.id" {
				name = a.GetValue().GetStringValue()
			}
		}
		for _, scope := range process.GetScopeSpans() {
			for _, span := range scope.GetSpans() {
				c.spans = append(c.spans, tracedSpan(name, span))
			}
		}
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
}

func tracedSpan(process string, s *otlp.Span) TracedSpan {
	span := TracedSpan{
		Trace: hex.EncodeToString(s.GetTraceId()), ID: hex.EncodeToString(s.GetSpanId()), Parent: hex.EncodeToString(s.GetParentSpanId()),
		Name: s.GetName(), Process: process, Failure: s.GetStatus().GetMessage(), Attributes: map[string]string{},
		Start: time.Unix(0, int64(s.GetStartTimeUnixNano())), End: time.Unix(0, int64(s.GetEndTimeUnixNano())),
	}
	for _, a := range s.GetAttributes() {
		text := a.GetValue().GetStringValue()
		if text == "" {
			text = fmt.Sprint(a.GetValue().GetIntValue())
		}
		span.Attributes[a.GetKey()] = text
	}
	for _, e := range s.GetEvents() {
		span.Events = append(span.Events, e.GetName())
	}
	return span
}

// Tree draws one trace as lines of "process: name", each indented below its parent. Spans whose parents have not come
// stand below a line that says so.
func Tree(spans []TracedSpan, trace string) string {
	var text strings.Builder
	known := map[string]bool{}
	for _, s := range spans {
		known[s.ID] = true
	}
	var draw func(parent string, depth int)
	draw = func(parent string, depth int) {
		for _, s := range spans {
			if s.Trace == trace && s.Parent == parent {
				fmt.Fprintf(&text, "%s%s: %s\n", strings.Repeat("  ", depth), s.Process, s.Name)
				draw(s.ID, depth+1)
			}
		}
	}
	draw("", 0)
	orphans := map[string]bool{}
	for _, s := range spans {
		if s.Trace == trace && s.Parent != "" && !known[s.Parent] && !orphans[s.Parent] {
			orphans[s.Parent] = true
			text.WriteString("parent has not come\n")
			draw(s.Parent, 1)
		}
	}
	return text.String()
}
