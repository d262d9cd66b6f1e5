package ring

// RoomID names a room. Its hash is the room's place on the ring.
type RoomID string

// NodeID names a media node. The name stays the same when the node restarts.
type NodeID string
