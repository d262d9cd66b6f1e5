package control

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/holdfast-rtc/holdfast/internal/traces"
)

// traceparent is the header of a call that belongs to a trace (W3C Trace Context). Only holders of the cluster key are
// heard, so a stranger cannot begin a trace.
const traceparent = "traceparent"

// traced adds the header of the trace that ctx belongs to.
func traced(ctx context.Context) context.Context {
	if header := traces.Header(ctx); header != "" {
		return metadata.AppendToOutgoingContext(ctx, traceparent, header)
	}
	return ctx
}

func traceUnary(ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, call grpc.UnaryInvoker, options ...grpc.CallOption) error {
	return call(traced(ctx), method, request, reply, conn, options...)
}

func traceStream(ctx context.Context, about *grpc.StreamDesc, conn *grpc.ClientConn, method string, open grpc.Streamer, options ...grpc.CallOption) (grpc.ClientStream, error) {
	return open(traced(ctx), about, conn, method, options...)
}

// under makes a handler's spans belong to the caller's trace.
func under(ctx context.Context, tracer *traces.Tracer) context.Context {
	if tracer == nil {
		return ctx
	}
	if header := metadata.ValueFromIncomingContext(ctx, traceparent); len(header) == 1 {
		return tracer.Under(ctx, header[0])
	}
	return ctx
}

// tracedStream is a stream whose handler's spans belong to the caller's trace.
type tracedStream struct {
	grpc.ServerStream

	ctx context.Context //nolint:containedctx // gRPC asks the stream for it
}

// Context is part of grpc.ServerStream.
func (s tracedStream) Context() context.Context { return s.ctx }
