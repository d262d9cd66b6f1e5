package ring

// RoomID is the key that is hashed onto the ring.
type RoomID string

// NodeID names a media node across restarts, so that these move no room.
type NodeID string
