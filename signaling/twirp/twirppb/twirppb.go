// Package twirppb has the requests and answers of LiveKit's RoomService that are not messages of its clients, too: those are in
// signaling/livekit/livekitpb. Names and numbers are LiveKit's, so that its server SDKs and this node understand each other.
package twirppb

//go:generate protoc -I. -I../../livekit/livekitpb --go_out=. --go_opt=paths=source_relative roomservice.proto
