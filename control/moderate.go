package control

import (
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// NotOpen returns the answer of Moderate for a room that is not open at the node.
func NotOpen() error { return status.Error(codes.NotFound, "the room is not open here") }

// IsNotOpen reports whether an error that a client received is NotOpen.
func IsNotOpen(err error) bool { return status.Code(err) == codes.NotFound }
