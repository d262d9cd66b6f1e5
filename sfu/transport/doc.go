// Package transport is the media node's end of its clients' WebRTC transports and of its connections to other media nodes:
// ICE as an agent that is found by its clients (RFC 8445), DTLS as the client (RFC 5763), SRTP and SRTCP (RFC 3711, RFC 7714), all on one UDP
// address, told apart by the first byte (RFC 7983).
//
// It promises: one goroutine reads each socket of that address, whatever the number of connections; a connection that is up has none of its own.
// An address belongs to a connection only after a check with that connection's password has come from it, and is never taken from
// another client's connection that is alive. No media is sent to an address that has not been authenticated, so candidates of an
// offer are not needed. Memory of a connection is bounded, whatever its other end sends.
//
// A keyed connection joins two media nodes. Its SRTP keys and its passwords come over the control protocol, so there is no DTLS, and it has UDP only. Both nodes
// Open it with their end of NewKeys, tell each other their credentials, and Dial the other's media socket, in any order. A pair of nodes has one such
// connection for all rooms, because the sockets tell connections apart by address; a newer connection of the pair takes the address. Both nodes
// check about once a second. What proves that the other node lives is an answer to a check, or a packet that opens; a check does not, because
// anybody on the path could repeat it. Media goes to the address that has answered. After 3 s of silence the connection is Disconnected; after 10 s
// it has Failed for good, and needs fresh keys. An SSRC counts until the connection is closed, so a sender that uses one for another stream must go on
// with its sequence numbers.
//
// The package knows neither SDP nor rooms nor what the media is. A client is checked only after it has checked the node: its checks prove its
// consent (RFC 7675), and its silence ends the connection.
package transport
