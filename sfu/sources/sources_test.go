package sources

import (
	"testing"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/sfu/forward"
)

func TestEverySourceHasItsWordAndItsBit(t *testing.T) {
	var all uint32
	for _, source := range forward.Sources() {
		if back, ok := Of(Proto(source)); !ok || back != source {
			t.Errorf("%s comes back as %q, %v", source, back, ok)
		}
		if bit := Bit(source); bit == 0 || all&bit != 0 {
			t.Errorf("%s has the bits %b, which others have too: %b", source, bit, all)
		}
		all |= Bit(source)
	}
	if _, ok := Of(control.Source_SOURCE_UNSPECIFIED); ok {
		t.Error("a source that is not specified is known")
	}
}

func TestAnEmptySetAllowsAllSources(t *testing.T) {
	for _, source := range forward.Sources() {
		if !MayPublish(0, source) || !MayPublish(Bit(source), source) || MayPublish(Bit(source)<<1, source) {
			t.Errorf("%s is allowed by the wrong sets", source)
		}
	}
}
