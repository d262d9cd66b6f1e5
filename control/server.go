package control

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/holdfast-rtc/holdfast/internal/connlimit"
	"github.com/holdfast-rtc/holdfast/internal/loglimit"
	"github.com/holdfast-rtc/holdfast/internal/panics"
	"github.com/holdfast-rtc/holdfast/internal/traces"
)

const (
	// requestBytes bounds an Attach, which names as many people as fit: see Expected.
	requestBytes     = 1 << 20
	handshakeTimeout = 3 * time.Second
	// serverKeepaliveTime and keepaliveTimeout together are how long a signaling node that is cut off counts as
	// watching.
	serverKeepaliveTime = 2 * time.Second
	refusalsPerSecond   = 0.2
	refusalBurst        = 3
	unproven            = 1024
	unprovenPerAddress  = 128
)

// Server is a node's control port.
type Server struct {
	key    ClusterKey
	panics *panics.Guard
	log    *slog.Logger
	tracer *traces.Tracer
}

// NewServer returns a Server that talks only to holders of key. A panic ends only the call in which it happens.
func NewServer(key ClusterKey, guard *panics.Guard, log *slog.Logger) *Server {
	return &Server{key: key, panics: guard, log: log}
}

// Trace makes the spans of handlers belong to their callers' traces. It is called before Serve; tracer may be nil.
func (s *Server) Trace(tracer *traces.Tracer) { s.tracer = tracer }

// catch runs the handling of one call and turns a panic of it into the call's error.
func (s *Server) catch(ctx context.Context, method string, handle func() error) (err error) {
	remote := ""
	if p, ok := peer.FromContext(ctx); ok {
		remote = p.Addr.String()
	}
	caught := s.panics.Catch(s.log, "a control call broke its handling: call ended", func() { err = handle() }, "method", method, "remote", remote)
	if caught {
		return status.Error(codes.Internal, "the node broke while it handled this call")
	}
	return err
}

func (s *Server) unary(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (reply any, err error) {
	err = s.catch(ctx, info.FullMethod, func() (err error) {
		reply, err = handler(under(ctx, s.tracer), request)
		return err
	})
	return reply, err
}

func (s *Server) stream(server any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	if ctx := under(stream.Context(), s.tracer); ctx != stream.Context() {
		stream = tracedStream{stream, ctx}
	}
	return s.catch(stream.Context(), info.FullMethod, func() error { return handler(server, stream) })
}

// Serve answers until ctx ends and the handlers have returned. A closed listener is evidence of a death, so a
// draining node keeps ctx alive until gossip has told its leave.
func (s *Server) Serve(ctx context.Context, lis net.Listener, register ...func(*grpc.Server)) error {
	guard := &guardedCredentials{
		TransportCredentials: s.key.serverCredentials(), log: s.log, refusals: loglimit.New(refusalsPerSecond, refusalBurst),
	}
	server := grpc.NewServer(
		grpc.Creds(guard),
		grpc.UnaryInterceptor(s.unary),
		grpc.StreamInterceptor(s.stream),
		grpc.ConnectionTimeout(handshakeTimeout),
		grpc.MaxRecvMsgSize(requestBytes),
		grpc.MaxSendMsgSize(replyBytes),
		grpc.WaitForHandlers(true),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: serverKeepaliveTime, Timeout: keepaliveTimeout}),
		// Half of the clients' interval is allowed, because their timers may be late.
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: keepaliveTime / 2, PermitWithoutStream: true}),
	)
	for _, one := range register {
		one(server)
	}
	stopped := make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(stopped)
		select {
		case <-ctx.Done():
		case <-ended:
		}
		server.Stop()
	}()
	err := server.Serve(connlimit.Listen(lis, connlimit.New(connlimit.Limits{Total: unproven, PerAddress: unprovenPerAddress})))
	close(ended)
	<-stopped
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("serve control on %s: %w", lis.Addr(), err)
	}
	return nil
}

type guardedCredentials struct {
	credentials.TransportCredentials

	log      *slog.Logger
	refusals *loglimit.Limiter
}

// ServerHandshake ends Pending as soon as the key is proven.
func (g *guardedCredentials) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	secured, info, err := g.TransportCredentials.ServerHandshake(conn)
	if err == nil {
		if pending, ok := conn.(*connlimit.Conn); ok {
			pending.Done()
		}
		return secured, info, nil
	}
	reason, harmless := refusalReason(err)
	if harmless {
		g.log.Debug("control connection ended before its handshake", "remote", conn.RemoteAddr().String())
		return nil, nil, err
	}
	if unlogged, ok := g.refusals.Next(); ok {
		g.log.Warn("control connection refused", "remote", conn.RemoteAddr().String(), "reason", reason, "error", err, "unlogged", unlogged)
	}
	return nil, nil, err
}

func (g *guardedCredentials) Clone() credentials.TransportCredentials {
	return &guardedCredentials{TransportCredentials: g.TransportCredentials.Clone(), log: g.log, refusals: g.refusals}
}

// refusalReason says why a handshake failed. A connection that is closed without data is harmless: it was a port
// check.
func refusalReason(err error) (reason string, harmless bool) {
	var header tls.RecordHeaderError
	// The alert came from the other end.
	var alert *net.OpError
	var timeout net.Error
	switch {
	case errors.Is(err, errWrongKey):
		return "it holds another cluster key", false
	case errors.As(err, &header):
		return "it does not speak TLS", false
	case errors.As(err, &alert) && alert.Op == "remote error":
		return "it refused our certificate: it holds another cluster key", false
	case errors.Is(err, io.EOF):
		return "it closed the connection", true
	case errors.As(err, &timeout) && timeout.Timeout():
		return "it did not finish the handshake in time", false
	default:
		return "its handshake is not ours", false
	}
}
