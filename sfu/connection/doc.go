// Package connection is the media node's end of one RTCPeerConnection: it answers the client's offers, sorts the client's packets into
// layers of the room's media, tells the client by RTCP what arrived, and sends the room's media through the slots of the offers.
//
// It promises that an offer which cannot be answered leaves a live connection as it was, that an SSRC is given to one slot only, and
// that nobody waits for the room's media while holding a lock that the socket's reader takes: the reader serves all clients.
//
// It does not know peers, rosters, pins or signaling nodes. It is told the room's media and the rights of its client, and tells its
// Owner what happens. Connection answers and reads RTCP, uplink sorts what the client sends, stream is one SSRC of it, and ssrcTable
// says which SSRC is which.
package connection
