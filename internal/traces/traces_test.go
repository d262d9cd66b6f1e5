package traces

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-rtc/holdfast/internal/metrics"
	"github.com/holdfast-rtc/holdfast/internal/panics"
	"github.com/holdfast-rtc/holdfast/internal/testkit"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// running makes a Tracer that sends to the collector. finish ends it, and returns when all spans are sent.
func running(t *testing.T, c *testkit.Collector, node string) (tracer *Tracer, finish func()) {
	t.Helper()
	tracer, err := New(Config{URL: c.URL, Sample: 1, Node: node, Role: "signaling", Version: "test"}, quiet())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var ended sync.WaitGroup
	ended.Go(func() {
		if err := tracer.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	finish = func() { cancel(); ended.Wait() }
	t.Cleanup(finish)
	return tracer, finish
}

func TestOneTreeOfTwoProcesses(t *testing.T) {
	c := testkit.NewCollector(t)
	signaling, endSignaling := running(t, c, "signaling-1")
	media, endMedia := running(t, c, "sfu-1")
	ctx, join := signaling.Join(t.Context(), "join")
	calling, attach := Call(ctx, "attach")
	there := media.Under(t.Context(), Header(calling))
	serving, served := Serve(there, "attach at media node")
	_, confirm := Start(serving, "confirm pin")
	confirm.End(errors.New("the store is silent"))
	served.Set("room", "hall").Set("empty", "").End(nil)
	// Steps whose end nobody may see are recorded when they are over.
	Of(there).Since("ICE", time.Now().Add(-time.Second)).EndAt(time.Now())
	attach.End(nil)
	join.Count("people", 3).End(nil)
	join.End(errors.New("only the first end counts"))
	endSignaling()
	endMedia()
	spans := c.Spans()
	want := "signaling-1: join\n  signaling-1: attach\n    sfu-1: ICE\n    sfu-1: attach at media node\n      sfu-1: confirm pin\n"
	if got := testkit.Tree(spans, spans[0].Trace); got != want || len(spans) != 5 {
		t.Errorf("got %d spans:\n%s\nwant:\n%s", len(spans), got, want)
	}
	for _, s := range spans {
		switch s.Name {
		case "join":
			if s.Attributes["holdfast.people"] != "3" || s.Failure != "" {
				t.Errorf("%+v", s)
			}
		case "attach at media node":
			if len(s.Attributes) != 1 || s.Attributes["holdfast.room"] != "hall" {
				t.Errorf("%+v", s)
			}
		case "confirm pin":
			if s.Failure != "the store is silent" {
				t.Errorf("%+v", s)
			}
		case "ICE":
			if took := s.End.Sub(s.Start); took < time.Second {
				t.Errorf("ICE took %v", took)
			}
		}
	}
	if now := media.Counters(); now.Sent != 3 || now.Dropped != 0 || now.Waiting != 0 {
		t.Errorf("%+v", now)
	}
	r := metrics.New("sfu", "sfu-1", panics.New(), quiet())
	media.Measure(r)
	answer := httptest.NewRecorder()
	r.Handler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if page := answer.Body.String(); !strings.Contains(page, `holdfast_trace_spans_total{result="exported"} 3`) || !strings.Contains(page, `holdfast_trace_spans_total{result="dropped"} 0`) {
		t.Errorf("Prometheus reads\n%s", page)
	}
}

func TestOneTraceOfADeath(t *testing.T) {
	c := testkit.NewCollector(t)
	one, endOne := running(t, c, "signaling-1")
	two, endTwo := running(t, c, "signaling-2")
	began := time.Now().Add(-20 * time.Millisecond)
	one.Evidence("sfu-2", "boot-7", "proof", "stream broken, control refused, media refused", began)
	one.Died("sfu-2", "boot-7", "proof", true)
	two.Died("sfu-2", "boot-7", "told by signaling-1", false)
	for _, tracer := range []*Tracer{one, two} {
		room := tracer.Rehoming("hall", "boot-7")
		_, place := Start(room.In(t.Context()), "place")
		place.End(nil)
		client := tracer.Client("hall", "boot-7")
		room.End(nil)
		client.Back("restart", 1, 140*time.Millisecond)
	}
	// A room that moved for another reason belongs to no death.
	if tracer := one; tracer.Rehoming("cellar", "boot-8") != (Span{}) || tracer.Client("cellar", "boot-8") != (Client{}) {
		t.Error("a room of no dead node is traced")
	}
	endTwo()
	endOne()
	spans := c.Spans()
	want := `signaling-1: node died
  signaling-1: failover
    signaling-1: evidence
    signaling-1: re-home room
      signaling-1: place
      signaling-1: client
  signaling-2: failover
    signaling-2: re-home room
      signaling-2: place
      signaling-2: client
`
	if got := testkit.Tree(spans, spans[0].Trace); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	for _, s := range spans {
		if s.Name == "failover" && (s.Attributes["holdfast.worst_gap_ms"] != "140" || s.Attributes["holdfast.clients_back"] != "1" || s.Attributes["holdfast.rooms"] != "1") {
			t.Errorf("%+v", s)
		}
	}
}

func TestALargeDeathIsBounded(t *testing.T) {
	c := testkit.NewCollector(t)
	tracer, end := running(t, c, "signaling-1")
	tracer.Died("sfu-2", "boot-7", "proof", false)
	for i := range 1000 {
		room := ring.RoomID(fmt.Sprint("room-", i))
		tracer.Rehoming(room, "boot-7").End(nil)
		for range 10 {
			tracer.Client(room, "boot-7").Back("restart", 1, time.Second)
		}
	}
	end()
	names := map[string]int{}
	for _, s := range c.Spans() {
		names[s.Name]++
		if s.Name == "failover" && (s.Attributes["holdfast.rooms_untraced"] != "872" || s.Attributes["holdfast.clients"] != "10000" || s.Attributes["holdfast.clients_back"] != "10000") {
			t.Errorf("%+v", s.Attributes)
		}
	}
	if names["re-home room"] != maxRooms || names["client"] != maxClients || names["failover"] != 1 {
		t.Errorf("%v", names)
	}
}

// TestNothingWhenOff asserts what the product pays for the hooks: no allocation.
func TestNothingWhenOff(t *testing.T) {
	if tracer, err := New(Config{Sample: 1}, quiet()); tracer != nil || err != nil {
		t.Fatalf("%v, %v", tracer, err)
	}
	ctx := context.WithValue(t.Context(), wantedKey{}, 1)
	if allocated := testing.AllocsPerRun(1000, func() { hooks(ctx, nil) }); allocated != 0 {
		t.Errorf("%v allocations", allocated)
	}
	none := &Tracer{sample: 0}
	if allocated := testing.AllocsPerRun(1000, func() { hooks(ctx, none) }); allocated != 0 {
		t.Errorf("%v allocations outside the sample", allocated)
	}
}

// hooks are all that the product calls.
func hooks(ctx context.Context, t *Tracer) {
	ctx, join := t.Join(ctx, "join")
	ctx, step := Start(ctx, "place")
	_, call := Call(ctx, "attach")
	_, served := Serve(t.Under(ctx, Header(ctx)), "attach at media node")
	Of(ctx).Since("ICE", time.Time{}).EndAt(time.Time{})
	t.Evidence("sfu-1", "", "proof", "", time.Time{})
	room := t.Rehoming("hall", "boot")
	room.In(ctx)
	client := t.Client("hall", "boot")
	client.Event("told")
	client.Back("restart", 1, 0)
	for _, span := range []Span{join, step, call, served, room} {
		span.Set("room", "hall").Count("people", 3).End(nil)
	}
}

func BenchmarkOff(b *testing.B) {
	ctx := b.Context()
	b.ReportAllocs()
	for b.Loop() {
		hooks(ctx, nil)
	}
}

func BenchmarkJoinOn(b *testing.B) {
	tracer, err := New(Config{URL: "http://127.0.0.1:1", Sample: 1}, quiet())
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		hooks(b.Context(), tracer)
	}
}

// fakeExporter fails while failing is not nil.
type fakeExporter struct {
	mu      sync.Mutex
	failing error // guarded by mu
	asked   int   // guarded by mu
	got     int   // guarded by mu
}

func (f *fakeExporter) Start(context.Context) error    { return nil }
func (f *fakeExporter) Shutdown(context.Context) error { return nil }

func (f *fakeExporter) ExportSpans(_ context.Context, spans []sdktrace.ReadOnlySpan) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked++
	if f.failing != nil {
		return f.failing
	}
	f.got += len(spans)
	return nil
}

func (f *fakeExporter) fail(with error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failing = with
}

func TestADeadCollector(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, fake := &testkit.Log{}, &fakeExporter{failing: errors.New("connection refused")}
		q := &queue{exporter: fake, log: slog.New(slog.NewTextHandler(log, nil)), panics: panics.New()}
		ctx, cancel := context.WithCancel(t.Context())
		var ended sync.WaitGroup
		ended.Go(func() { _ = q.run(ctx, func(time.Time, bool) {}) })
		for range queued + 10 {
			q.OnEnd(nil)
		}
		if now := q.counters(); now.Waiting != queued || now.Dropped != 10 {
			t.Errorf("%+v", now)
		}
		// A collector that is back within a quarter of a minute gets everything.
		<-time.After(10 * time.Second)
		fake.fail(nil)
		<-time.After(10 * time.Second)
		if now := q.counters(); now.Sent != queued || now.Dropped != 10 || now.Waiting != 0 {
			t.Errorf("%+v", now)
		}
		// One that stays away gets a request now and then, and one line tells of it.
		fake.fail(errors.New("connection refused"))
		before := fake.asked
		for range 3 {
			q.OnEnd(nil)
		}
		<-time.After(5 * time.Minute)
		if now := q.counters(); now.Waiting != 0 || now.Dropped != 13 {
			t.Errorf("%+v", now)
		}
		if asked := fake.asked - before; asked != maxTries {
			t.Errorf("asked %d times, want %d", asked, maxTries)
		}
		cancel()
		ended.Wait()
		if lines := strings.Count(log.String(), "takes no traces"); lines != 1 {
			t.Errorf("%d lines:\n%s", lines, log)
		}
	})
}

func TestAFailoverEndsWhenItIsQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracer, err := New(Config{URL: "http://collector:4318", Sample: 1}, quiet())
		if err != nil {
			t.Fatal(err)
		}
		tracer.queue.exporter = &fakeExporter{}
		ctx, cancel := context.WithCancel(t.Context())
		var ended sync.WaitGroup
		ended.Go(func() { _ = tracer.Run(ctx) })
		tracer.Died("sfu-1", "boot-1", "proof", true)
		<-time.After(10 * time.Second)
		tracer.Client("hall", "boot-1").Back("restart", 1, time.Second)
		<-time.After(10 * time.Second)
		if d := tracer.death("", "boot-1", time.Time{}); d == nil {
			t.Error("the failover ended while clients came back")
		}
		<-time.After(10 * time.Second)
		if d := tracer.death("", "boot-1", time.Time{}); d != nil {
			t.Error("the failover did not end")
		}
		if now := tracer.Counters(); now.Sent != 3 {
			t.Errorf("%+v", now)
		}
		cancel()
		ended.Wait()
	})
}

func TestValidate(t *testing.T) {
	for _, good := range []Config{{}, {URL: "http://collector:4318"}, {URL: "https://collector/otlp/v1/traces", Sample: 0.1}} {
		if err := good.Validate(); err != nil {
			t.Errorf("%+v: %v", good, err)
		}
	}
	for _, bad := range []Config{
		{URL: "collector:4318"},
		{URL: "grpc://collector:4317"},
		{URL: "http://"},
		{URL: "http://ada:secret@collector"},
		{URL: "http://c/?token=secret"},
		{URL: "http://collector\x7f:secret"},
		{Sample: -0.1},
		{Sample: 1.1},
		{Sample: math.NaN()},
	} {
		err := bad.Validate()
		if err == nil {
			t.Errorf("%+v is accepted", bad)
		} else if strings.Contains(err.Error(), "secret") {
			t.Errorf("the error tells a secret: %v", err)
		}
		if tracer, err := New(bad, quiet()); bad.URL != "" && (tracer != nil || err == nil) {
			t.Errorf("%+v makes a tracer", bad)
		}
	}
	if at, _ := endpoint("http://collector:4318/"); at != "http://collector:4318/v1/traces" {
		t.Error(at)
	}
}

func TestDeathsHaveTracesOfTheirOwn(t *testing.T) {
	seen := map[trace.TraceID]bool{}
	for _, node := range []ring.NodeID{"sfu-1", "sfu-2"} {
		for _, boot := range []pin.BootID{"a", "b"} {
			made := deathIDs(node, boot)
			if seen[made.trace] || !made.context().IsValid() || made != deathIDs(node, boot) {
				t.Errorf("%s %s: %v", node, boot, made)
			}
			seen[made.trace] = true
		}
	}
}

// FuzzUnder gives a media node headers of other processes.
func FuzzUnder(f *testing.F) {
	f.Add("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	f.Add("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00")
	f.Add("ff-0-0-")
	tracer, err := New(Config{URL: "http://127.0.0.1:1", Sample: 1}, quiet())
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, header string) {
		ctx := tracer.Under(t.Context(), header)
		if sent := Header(ctx); sent != "" && !strings.HasPrefix(header, header[:2]+sent[2:52]) {
			t.Errorf("%q became %q", header, sent)
		}
		_, span := Serve(ctx, "attach at media node")
		span.End(nil)
	})
}
