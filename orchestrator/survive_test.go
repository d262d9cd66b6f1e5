package orchestrator

import (
	"context"
	"errors"
	"testing"

	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/internal/panics"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

// explosive is a Prober whose answers break their reading.
type explosive struct{ *addresses }

func (explosive) Holds(context.Context, string, ring.RoomID) (pin.Pin, error) { panic("of a test") }
func (explosive) BootAt(context.Context, string) (pin.BootID, error)          { panic("of a test") }

// TestAnOwnersAnswerThatBreaksIsNoAnswer: owners are asked beside the caller, who cannot recover for them.
func TestAnOwnersAnswerThatBreaksIsNoAnswer(t *testing.T) {
	signaling, store, where, _ := forgetful(1)
	cfg := patient()
	cfg.Panics = panics.New()
	o := New(store, signaling.views, explosive{where}, cfg, quiet)
	got, err := o.Place(t.Context(), class, headroom.Room{})
	if err != nil || store.Stands(class) != got.Encode() {
		t.Errorf("Place = %v, %v, want that the claim stands", got, err)
	}
	if cfg.Panics.Count() == 0 {
		t.Error("nobody was asked")
	}
	if _, err := o.probe(t.Context(), pin.Pin{Control: "nowhere"}); !errors.Is(err, errBroke) {
		t.Errorf("a probe that breaks ends with %v", err)
	}
}
