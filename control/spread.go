package control

import (
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// WhyNotSpread returns the words in which a media node refused Spread, and "" for any other error.
func WhyNotSpread(err error) string {
	switch status.Code(err) {
	case codes.Unimplemented:
		return "its release keeps every room whole"
	case codes.FailedPrecondition:
		return status.Convert(err).Message()
	default:
		return ""
	}
}
