// Package control is the RPC between signaling nodes and SFU nodes, and among signaling nodes: the
// generated protobuf messages and gRPC stubs, conversions to and from pins, and
// the transport credentials that both ends derive from the cluster key. It
// knows neither rooms nor media.
package control

//go:generate protoc --go_out=. --go_opt=paths=source_relative --go-grpc_out=. --go-grpc_opt=paths=source_relative control.proto messages.proto moves.proto
