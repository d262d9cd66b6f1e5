// Package transport is the media node's end of its clients' WebRTC transports: ICE as an agent that is found by its
// clients (RFC 8445), DTLS as the client (RFC 5763), SRTP and SRTCP (RFC 3711, RFC 7714), all on one UDP address, told apart by the first byte (RFC 7983).
//
// It promises: one goroutine reads each socket of that address, whatever the number of connections; a connection that is up has none of its own.
// An address belongs to a connection only after a check with that connection's password has come from it, and is never taken from
// another client's connection that is alive. No packet is sent to an address that has not been authenticated, so candidates of an
// offer are not needed. Memory of a connection is bounded, whatever its client sends.
//
// It knows neither SDP nor rooms nor what the media is. It checks only who has checked it: the client's checks prove its consent
// (RFC 7675), and its silence ends the connection.
package transport
