package sfu

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/holdfast-rtc/holdfast/control"
)

// TestReachTakesNoMoreThanItNeeds: all who ask at one time get the same credentials, and a request that is too large is refused. What a
// check gets is in signaling/mediacheck.
func TestReachTakesNoMoreThanItNeeds(t *testing.T) {
	s := newStage(t, "a")
	first, err := s.client.Reach(t.Context(), &control.ReachRequest{Signaling: "one"})
	if err != nil {
		t.Fatal(err)
	}
	second, err := s.client.Reach(t.Context(), &control.ReachRequest{Signaling: "two"})
	if err != nil || second.GetPassword() != first.GetPassword() || len(first.GetPassword()) < 20 {
		t.Errorf("the passwords are of %d bytes, the same: %v, %v", len(first.GetPassword()), second.GetPassword() == first.GetPassword(), err)
	}
	if want := []string{s.node.MediaAddress().String()}; !slices.Equal(first.GetMedia(), want) {
		t.Errorf("clients are told %v, want %v", first.GetMedia(), want)
	}
	for what, request := range map[string]*control.ReachRequest{
		"nobody":         {},
		"a long name":    {Signaling: strings.Repeat("n", 10_000)},
		"many addresses": {Signaling: "one", Tried: true, Silent: make([]string, 100)},
		"a long address": {Signaling: "one", Tried: true, Silent: []string{strings.Repeat("9", 10_000)}},
	} {
		if _, err := s.client.Reach(t.Context(), request); status.Code(err) != codes.InvalidArgument {
			t.Errorf("%s: %v", what, err)
		}
	}
}
