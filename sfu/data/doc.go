// Package data is the media node's end of its clients' data channels: SCTP over DTLS (RFC 8831), the channels that clients open (RFC 8832),
// and the passing on of their messages within a room.
//
// A client has two channels, one for reliable messages in order and one for messages that may be lost. It opens them by DATA_CHANNEL_OPEN
// with the labels _reliable and _lossy, or it has them from the start: negotiated as the streams 100 and 101, or opened at the room's
// former node. What is sent on another channel is dropped. A message is a DataPacket of LiveKit's protocol, whoever the client is, so
// that all kinds of clients understand each other. The node reads of it for whom it is, and writes into it whom it is from.
//
// It promises: whoever may not send reaches nobody; what a person sends, what a room passes on, and what waits for a receiver is bounded,
// whatever clients do. Who sends reliable messages too fast is slowed down. Other messages too many are dropped. A receiver that does not
// read loses what its queue does not take, of both kinds, and delays nobody else. A message goes to who is connected at that moment.
//
// It does not know peers, rosters or other nodes: Room is told who a client is, and hands messages on for the room's other nodes.
package data
