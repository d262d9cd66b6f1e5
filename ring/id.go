package ring

// RoomID is hashed onto the ring.
type RoomID string

// NodeID names a media node across restarts.
type NodeID string
