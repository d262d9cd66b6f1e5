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
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"

	"github.com/holdfast-rtc/holdfast/lobby"
	"github.com/holdfast-rtc/holdfast/loglimit"
)

const (
	// requestBytes bounds one message of an edge. An offer has at most 256 KiB (the
	// limit of the client's socket); an Attach that names 300 expected people
	// with 2 KiB of metadata each has 600 KiB.
	requestBytes = 1 << 20
	// handshakeTimeout drops a connection that has not proven the key, so that
	// a scanner or a stuck host holds a socket for seconds, not gRPC's two minutes.
	handshakeTimeout = 3 * time.Second
	// serverKeepaliveTime and keepaliveTimeout are how long a signaling node that is cut off still counts as one that watches. gRPC
	// bounds a client's pings, not a server's.
	serverKeepaliveTime = 2 * time.Second
	// refusalsPerSecond and refusalBurst bound the log lines about refused connections.
	refusalsPerSecond = 0.2
	refusalBurst      = 3
	// unproven and unprovenPerAddress bound the connections that have not proven the key; the
	// one that has tried longest goes for one more. An edge proves itself within two round
	// trips, and opens one connection beside its probes.
	unproven           = 1024
	unprovenPerAddress = 128
)

// Server is the control port of one SFU node.
type Server struct {
	key ClusterKey
	log *slog.Logger
}

// NewServer makes a control server that only talks to holders of key.
func NewServer(key ClusterKey, log *slog.Logger) *Server { return &Server{key: key, log: log} }

// Serve answers on lis, with the services that register adds, until ctx ends;
// then it closes the listener and every connection, and returns nil when the
// handlers have ended. They must end with their stream's context.
//
// A listener that is closed is evidence of a dead process. So a node that drains
// keeps ctx alive, and refuses new rooms by message, until it is empty and has
// said in gossip that it leaves.
func (s *Server) Serve(ctx context.Context, lis net.Listener, register func(*grpc.Server)) error {
	guard := &guardedCredentials{
		TransportCredentials: s.key.ServerCredentials(), log: s.log, refusals: loglimit.New(refusalsPerSecond, refusalBurst),
	}
	server := grpc.NewServer(
		grpc.Creds(guard),
		grpc.ConnectionTimeout(handshakeTimeout),
		grpc.MaxRecvMsgSize(requestBytes),
		grpc.MaxSendMsgSize(replyBytes),
		grpc.WaitForHandlers(true),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: serverKeepaliveTime, Timeout: keepaliveTimeout}),
		// Half of what clients do, so that a late timer is never taken for abuse.
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: keepaliveTime / 2, PermitWithoutStream: true}),
	)
	register(server)
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
	err := server.Serve(lobby.Listen(lis, lobby.New(lobby.Limits{Total: unproven, PerAddress: unprovenPerAddress})))
	close(ended)
	<-stopped
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("serve control on %s: %w", lis.Addr(), err)
	}
	return nil
}

// guardedCredentials logs the connections that do not prove the cluster key.
type guardedCredentials struct {
	credentials.TransportCredentials

	log      *slog.Logger
	refusals *loglimit.Limiter
}

// ServerHandshake is where a connection proves itself; one that cannot is closed by gRPC.
func (g *guardedCredentials) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	secured, info, err := g.TransportCredentials.ServerHandshake(conn)
	if err == nil {
		if guest, ok := conn.(*lobby.Conn); ok {
			guest.Leave()
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

// Clone is part of credentials.TransportCredentials.
func (g *guardedCredentials) Clone() credentials.TransportCredentials {
	return &guardedCredentials{TransportCredentials: g.TransportCredentials.Clone(), log: g.log, refusals: g.refusals}
}

// refusalReason says in words why a handshake ended. A connection that was
// closed without a word is a port check, such as the death probe's: harmless.
func refusalReason(err error) (reason string, harmless bool) {
	var header tls.RecordHeaderError
	var alert *net.OpError // crypto/tls reports the other end's alert as an operation "remote error"
	var timeout net.Error
	switch {
	case errors.Is(err, ErrWrongKey):
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
