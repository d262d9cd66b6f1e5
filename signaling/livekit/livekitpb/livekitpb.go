// Package livekitpb has the messages of LiveKit's clients and server SDKs that this node reads and writes. livekit.proto is their source;
// signaling/livekit says what they mean here.
package livekitpb

//go:generate protoc --go_out=. --go_opt=paths=source_relative livekit.proto
