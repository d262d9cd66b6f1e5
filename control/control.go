// Package control is the RPC between signaling nodes and SFU nodes, and among signaling nodes: the
// generated protobuf messages and gRPC stubs, conversions to and from pins, and the transport
// credentials that both ends derive from the cluster key.
//
// It promises that a process without the cluster's key gets no connection, that keys can be replaced
// while connections are open, that each end tells its version and what it understands, and that a
// panic in an answer ends that call alone.
//
// It knows neither rooms nor media: a service is registered by the package that answers it. Begin with
// control.proto, then NewServer for the answering end and NewPool for the asking one.
package control

//go:generate protoc --go_out=. --go_opt=paths=source_relative --go-grpc_out=. --go-grpc_opt=paths=source_relative control.proto link.proto messages.proto moves.proto standby.proto
