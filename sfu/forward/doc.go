// Package forward is the media plane of one room: it takes the RTP packets of
// every publisher and writes each of them into the slots that show it.
//
// It promises that a slot looks to its receiver like one continuous stream
// (sequence numbers, timestamps, VP8 picture ids) however often another person
// or another simulcast layer is put into it, that a switch of video begins with
// a keyframe, that the path of a packet allocates nothing, and that every packet
// it should have forwarded and did not is counted with its reason.
//
// One goroutine, Room.Run, owns all state. Control calls are tasks for it, in
// the order in which they were made; they may be made before Run has begun, and
// do nothing once it has ended.
//
// A layer may come from another media node, or go to one: see Layer.Tell and Layer.Tap. Such a layer crosses between the nodes once, and
// only while somebody behind it wants it.
//
// It knows the RTP and RTCP packet types of Pion and no peer connection, no
// negotiation, no signaling and no clock but time.Now.
package forward
