package ring

// RoomID names a room: the key that is hashed onto the ring. It is opaque here;
// the signaling edge decides which names are acceptable.
type RoomID string

// NodeID is the stable name of an SFU node, the same across restarts of its
// process. The ring hashes it and nothing else, so that a restart does not
// reshuffle rooms.
type NodeID string
