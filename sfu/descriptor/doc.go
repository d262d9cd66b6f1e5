// Package descriptor reads the dependency descriptor, the RTP header extension that says which frames a frame needs and which receivers
// need it (RTP Payload Format For AV1, appendix A). It works for every codec and reads no payload.
//
// What it reads may come from anybody: work and memory are bounded for each descriptor, and what is malformed changes nothing.
// Custom chains are not read: what is left out by intention is known from the decode targets, and what is lost the receivers notice.
package descriptor
