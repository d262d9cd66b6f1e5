// Package traces tells an OpenTelemetry collector, by OTLP over HTTP, how long each step of a join and of a failover
// took, on all nodes that took part.
//
// It promises:
//   - A process without a Tracer pays nothing: a nil Tracer and a zero Span do nothing and allocate nothing.
//   - Nobody waits for the collector. Spans wait in a bounded queue, and the spans that do not fit are counted.
//   - No span holds an identity, a name of a person, an address of a client, a token or a key. Rooms are named.
//   - All signaling nodes describe one death in one trace, without a message between them: its id is a hash of the
//     dead node's name and boot.
//
// It does not know what the steps mean: other packages name them. No other package knows OpenTelemetry. A reader begins
// with Start, then reads death.go.
package traces

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/url"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-rtc/holdfast/internal/metrics"
	"github.com/holdfast-rtc/holdfast/internal/panics"
)

const (
	// tracesPath is where collectors listen (OTLP specification, section "OTLP/HTTP Request").
	tracesPath = "/v1/traces"
	// valueBytes bounds an attribute. Room names have at most 128 bytes, and an error says enough in 256.
	valueBytes = 256
	// A span has one attribute for each thing that is said of its step.
	maxAttributes = 32
)

// Config is what a Tracer is told by its process.
type Config struct {
	// URL is the collector's, such as http://collector:4318. Without a path it means the path /v1/traces.
	URL string
	// Sample is the share of the joins that are traced, from 0 to 1. Failovers are always traced.
	Sample float64
	// Node, Role and Version are this process's.
	Node, Role, Version string
	Panics              *panics.Guard
}

// Validate lists every fault. An empty URL is none.
func (c Config) Validate() error {
	var faults []error
	if c.URL != "" {
		if _, err := endpoint(c.URL); err != nil {
			faults = append(faults, err)
		}
	}
	if !(c.Sample >= 0 && c.Sample <= 1) {
		faults = append(faults, fmt.Errorf("--traces-sample: %v is not between 0 and 1", c.Sample))
	}
	return errors.Join(faults...)
}

// The errors of endpoint do not repeat the URL, which may hold a password by mistake.
var (
	errURL      = errors.New("--traces-url: not an http or https URL with a host, such as http://collector:4318")
	errPassword = errors.New("--traces-url: it must not hold a user or a password; give them in OTEL_EXPORTER_OTLP_HEADERS")
)

func endpoint(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return "", errURL
	}
	if u.User != nil {
		return "", errPassword
	}
	if strings.Trim(u.Path, "/") == "" {
		u.Path = tracesPath
	}
	return u.String(), nil
}

// Tracer makes the spans of one process. It is safe for concurrent use; a nil Tracer records nothing.
type Tracer struct {
	tracer trace.Tracer
	queue  *queue
	sample float64
	deaths deaths
}

// New starts nothing: Run sends. It returns nil for an empty URL. The variables OTEL_EXPORTER_OTLP_HEADERS and
// OTEL_EXPORTER_OTLP_CERTIFICATE of the OTLP specification are heeded, since a flag must not hold a secret.
func New(config Config, log *slog.Logger) (*Tracer, error) {
	if config.URL == "" {
		return nil, nil
	}
	if err := config.Validate(); err != nil {
		return nil, err
	}
	at, err := endpoint(config.URL)
	if err != nil {
		return nil, err
	}
	guard := config.Panics
	if guard == nil {
		guard = panics.New()
	}
	t := &Tracer{sample: config.Sample, queue: &queue{
		// The queue repeats what failed, so the exporter need not.
		exporter: otlptracehttp.NewUnstarted(
			otlptracehttp.WithEndpointURL(at), otlptracehttp.WithTimeout(exportTimeout),
			otlptracehttp.WithRetry(otlptracehttp.RetryConfig{Enabled: false}),
		),
		log: log, panics: guard,
	}}
	limits := sdktrace.NewSpanLimits()
	limits.AttributeValueLengthLimit, limits.AttributeCountLimit = valueBytes, maxAttributes
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithSpanProcessor(t.queue), sdktrace.WithIDGenerator(generator{}), sdktrace.WithRawSpanLimits(limits),
		// Join decides about the sample. Whatever begins a span below another one belongs to a trace that is wanted.
		sdktrace.WithSampler(sdktrace.AlwaysSample()),
		sdktrace.WithResource(resource.NewSchemaless(
			attribute.String("service.name", "holdfast-"+config.Role), attribute.String("service.namespace", "holdfast"),
			attribute.String("service.instance.id", config.Node), attribute.String("service.version", config.Version),
		)),
	)
	t.tracer = provider.Tracer("github.com/holdfast-rtc/holdfast")
	return t, nil
}

// Run sends the spans until ctx ends. Then it ends the spans of deaths, sends what waits, and returns nil.
func (t *Tracer) Run(ctx context.Context) error {
	if t == nil {
		return nil
	}
	return t.queue.run(ctx, t.deaths.end)
}

// Counters says what became of the spans since the start.
type Counters struct {
	// Sent were taken by the collector.
	Sent uint64
	// Dropped did not fit into the queue, or were refused by the collector again and again.
	Dropped uint64
	// Waiting are in the queue.
	Waiting int
}

// Counters is zero for a nil Tracer.
func (t *Tracer) Counters() Counters {
	if t == nil {
		return Counters{}
	}
	return t.queue.counters()
}

// Measure has Prometheus read the counters. Those of a nil Tracer are zero.
func (t *Tracer) Measure(r *metrics.Registry) {
	metrics.Read(
		r, t.Counters,
		metrics.Reading[Counters]{
			Name: "trace_spans_total", Help: "Spans of traces, by result: exported (the collector took it), dropped (it did not fit into the queue, or the collector refused it again and again).", Counter: true, Label: "result",
			Values: func(c Counters) map[string]float64 {
				return map[string]float64{"exported": float64(c.Sent), "dropped": float64(c.Dropped)}
			},
		},
		metrics.Reading[Counters]{Name: "trace_spans_waiting", Help: "Spans that wait for the collector.", Value: func(c Counters) float64 { return float64(c.Waiting) }},
	)
}

type tracerKey struct{}

// Join begins a trace, unless this join is not in the sample. What is begun under the returned context belongs to it.
func (t *Tracer) Join(ctx context.Context, name string) (context.Context, Span) {
	if t == nil || rand.Float64() >= t.sample { //nolint:gosec // it chooses a sample, and protects nothing
		return ctx, Span{}
	}
	ctx, span := t.tracer.Start(context.WithValue(ctx, tracerKey{}, t), name, trace.WithNewRoot(), trace.WithSpanKind(trace.SpanKindServer))
	return ctx, Span{t, span}
}

// Under makes what is begun under the returned context belong to the span of another process that sent the header
// traceparent (W3C Trace Context, section 3.2). Without a valid header of a sampled trace it returns ctx.
func (t *Tracer) Under(ctx context.Context, header string) context.Context {
	if t == nil || header == "" {
		return ctx
	}
	remote := propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier{headerName: header})
	from := trace.SpanContextFromContext(remote)
	if !from.IsSampled() {
		return ctx
	}
	return trace.ContextWithRemoteSpanContext(context.WithValue(ctx, tracerKey{}, t), from)
}

const headerName = "traceparent"

// Header returns the header traceparent for a call to another process, or nothing if ctx belongs to no trace.
func Header(ctx context.Context) string {
	if tracerOf(ctx) == nil {
		return ""
	}
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	return carrier[headerName]
}

func tracerOf(ctx context.Context) *Tracer {
	t, _ := ctx.Value(tracerKey{}).(*Tracer)
	return t
}

// Span is one step of a trace. The zero Span records nothing. A Span may be used by several goroutines.
type Span struct {
	tracer *Tracer
	span   trace.Span
}

// Start begins a step of the trace that ctx belongs to. It returns ctx and the zero Span if ctx belongs to none.
func Start(ctx context.Context, name string) (context.Context, Span) {
	return start(ctx, name, trace.SpanKindInternal)
}

// Call is Start for a call to another process.
func Call(ctx context.Context, name string) (context.Context, Span) {
	return start(ctx, name, trace.SpanKindClient)
}

// Serve is Start for the handling of another process's call.
func Serve(ctx context.Context, name string) (context.Context, Span) {
	return start(ctx, name, trace.SpanKindServer)
}

func start(ctx context.Context, name string, kind trace.SpanKind) (context.Context, Span) {
	t := tracerOf(ctx)
	if t == nil {
		return ctx, Span{}
	}
	ctx, span := t.tracer.Start(ctx, name, trace.WithSpanKind(kind))
	return ctx, Span{t, span}
}

// Of returns the span that ctx belongs to, which may be another process's.
func Of(ctx context.Context) Span {
	t := tracerOf(ctx)
	if t == nil {
		return Span{}
	}
	return Span{t, trace.SpanFromContext(ctx)}
}

// In makes what is begun under the returned context belong to the span.
func (s Span) In(ctx context.Context) context.Context {
	if s.span == nil {
		return ctx
	}
	return trace.ContextWithSpan(context.WithValue(ctx, tracerKey{}, s.tracer), s.span)
}

// Since begins a step below the span that began earlier. What a failed step began is never sent, so a step whose end
// may not come is best recorded with Since when it ends.
func (s Span) Since(name string, began time.Time) Span {
	if s.span == nil {
		return Span{}
	}
	_, span := s.tracer.tracer.Start(trace.ContextWithSpan(context.Background(), s.span), name, trace.WithTimestamp(began))
	return Span{s.tracer, span}
}

// Set says something of the step. The collector sees the key with the prefix "holdfast.". Empty values are left out.
func (s Span) Set(key, value string) Span {
	if s.span != nil && value != "" {
		s.span.SetAttributes(attribute.String("holdfast."+key, value))
	}
	return s
}

// Count is Set for a number.
func (s Span) Count(key string, value int) Span {
	if s.span != nil {
		s.span.SetAttributes(attribute.Int("holdfast."+key, value))
	}
	return s
}

// Event notes that something happened now within the step.
func (s Span) Event(name string) {
	if s.span != nil {
		s.span.AddEvent(name)
	}
}

// End ends the step now, as failed if err is not nil. Only the first end counts.
func (s Span) End(err error) { s.endAt(time.Time{}, err) }

// EndAt is End with the time of a past end.
func (s Span) EndAt(at time.Time) { s.endAt(at, nil) }

func (s Span) endAt(at time.Time, err error) {
	if s.span == nil {
		return
	}
	if err != nil {
		text := err.Error()
		s.span.SetStatus(codes.Error, strings.ToValidUTF8(text[:min(len(text), valueBytes)], ""))
	}
	if at.IsZero() {
		s.span.End()
		return
	}
	s.span.End(trace.WithTimestamp(at))
}
