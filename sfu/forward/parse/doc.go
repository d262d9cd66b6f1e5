// Package parse reads from RTP packets what a forwarder must know: the header and its extensions, where pictures and keyframes
// begin, temporal layers, and the blocks of redundant sound.
//
// Its functions read foreign bytes. They never read or write outside of them, never panic and allocate nothing. What is cut short
// or unknown is reported as absent; only a malformed RTP header is an error. Nothing is decoded, and encrypted payloads are read
// as far as their payload descriptors allow.
//
// It knows no room, no slot and no time. A reader begins with ReadHeader and ReadPicture.
package parse
