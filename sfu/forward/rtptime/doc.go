// Package rtptime relates the RTP timestamps of a publisher's tracks to one wall clock.
//
// A WallClock is ours; a PeerClock follows the publisher's by its sender reports; a StreamClock says when a packet of one track was
// recorded. A Timeline adds the time that the timestamps of sound lack after a pause.
//
// Nothing here is safe for concurrent use, starts a goroutine, reads the time or allocates. It knows no room, no slot and no packet.
package rtptime
