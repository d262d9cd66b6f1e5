package transport

import (
	"testing"
	"time"
)

// TestAWokenNodeDoesNotNominate: after a pause in which another node may have gone on with the connection, the client is left alone for a while.
func TestAWokenNodeDoesNotNominate(t *testing.T) {
	now := time.Now()
	r := reversal{wanted: true, answers: reversedAfter}
	if r.wakes(now) {
		t.Error("the first look follows no pause")
	}
	if now = now.Add(notLooked - time.Millisecond); r.wakes(now) {
		t.Error("looks may be a little late")
	}
	if now = now.Add(notLooked); !r.wakes(now) {
		t.Error("a pause is not noticed")
	}
	if now = now.Add(time.Millisecond); r.wakes(now) {
		t.Error("one pause counts twice")
	}
	// A node that goes on with another's connection has to nominate itself, however slow it is.
	r.answers = 0
	if now = now.Add(time.Minute); r.wakes(now) {
		t.Error("a client that does not follow yet is left alone")
	}
}
