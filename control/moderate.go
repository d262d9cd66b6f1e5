package control

import (
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// NotOpen is how Moderate answers somebody in a room that is not open at the node.
func NotOpen() error { return status.Error(codes.NotFound, "the room is not open here") }

// IsNotOpen says that an error is NotOpen, from a client.
func IsNotOpen(err error) bool { return status.Code(err) == codes.NotFound }
