package redisstore

import (
	"net"
	"time"
)

// brokenConn is a connection that could not be made: see patientDialer.
type brokenConn struct{ why error }

// Read fails.
func (b *brokenConn) Read([]byte) (int, error) { return 0, b.why }

// Write fails.
func (b *brokenConn) Write([]byte) (int, error) { return 0, b.why }

// Close has nothing to close.
func (*brokenConn) Close() error { return nil }

// LocalAddr is part of net.Conn.
func (*brokenConn) LocalAddr() net.Addr { return &net.TCPAddr{} }

// RemoteAddr is part of net.Conn.
func (*brokenConn) RemoteAddr() net.Addr { return &net.TCPAddr{} }

// SetDeadline is part of net.Conn.
func (*brokenConn) SetDeadline(time.Time) error { return nil }

// SetReadDeadline is part of net.Conn.
func (*brokenConn) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline is part of net.Conn.
func (*brokenConn) SetWriteDeadline(time.Time) error { return nil }
