// Package sfu is a media node: rooms, the peers in them, and the control service
// through which signaling nodes speak for the peers.
//
// It promises that a room is served under one fence at a time and never under
// one that was fenced; that a peer's media outlives the signaling node that
// attached it by the grace time; that a browser may bring the connection it had
// with another node and keep it; and that nothing a client or a signaling node says can
// harm another peer. Every queue it holds is bounded.
//
// It does not know how rooms are placed, who else is in the cluster, or where
// pins are stored: it is told a pin by the signaling node that attaches, asks its Owner
// before it serves somebody new, and is told by Fence when a room has gone
// elsewhere. sfu/connection is the node's end of a client's RTCPeerConnection, and
// sfu/forward forwards the packets.
//
// A reader begins with Node.Run, follows an Attach through Node.attach to the
// room's loop, room.run, and a message from there through session.handle.
package sfu
