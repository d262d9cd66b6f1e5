package traces

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"

	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

type ids struct {
	trace trace.TraceID
	span  trace.SpanID
}

// deathIDs returns the trace of a media node's death and the trace's first span. They are parts of a hash, so that all
// signaling nodes have the same ones without asking each other.
func deathIDs(node ring.NodeID, boot pin.BootID) ids {
	sum := sha256.Sum256([]byte("holdfast death\x00" + string(node) + "\x00" + string(boot)))
	var made ids
	copy(made.trace[:], sum[:16])
	copy(made.span[:], sum[16:])
	return made
}

// context is the first span as others see it.
func (i ids) context() trace.SpanContext {
	return trace.NewSpanContext(trace.SpanContextConfig{TraceID: i.trace, SpanID: i.span, TraceFlags: trace.FlagsSampled, Remote: true})
}

type wantedKey struct{}

// generator makes random ids, and those that the context wants. It is an sdktrace.IDGenerator.
type generator struct{}

// NewIDs is part of sdktrace.IDGenerator: it is asked for the first span of a trace.
func (g generator) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	if wanted, ok := ctx.Value(wantedKey{}).(ids); ok {
		return wanted.trace, wanted.span
	}
	var id trace.TraceID
	for !id.IsValid() {
		binary.BigEndian.PutUint64(id[:8], rand.Uint64())
		binary.BigEndian.PutUint64(id[8:], rand.Uint64())
	}
	return id, g.NewSpanID(ctx, id)
}

// NewSpanID is part of sdktrace.IDGenerator.
func (generator) NewSpanID(context.Context, trace.TraceID) trace.SpanID {
	var id trace.SpanID
	for !id.IsValid() {
		binary.BigEndian.PutUint64(id[:], rand.Uint64())
	}
	return id
}
