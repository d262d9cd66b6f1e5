//go:build long

package sim

import "testing"

// At 60 % load a hundred equal nodes that are left alone stay even, and none passes its ceiling.
func TestNodesStayEvenAtSixtyPercent(t *testing.T) {
	r := play(t, read(t, "steady"))
	ours := r.Results[len(r.Results)-1]
	t.Logf("peak/mean %.3f at the median, fullest node at %.2f, mean at most %.2f", ours.Median, ours.Peak, ours.Mean)
	if ours.Mean < 0.58 {
		t.Errorf("the mean load is %.2f, want 0.6", ours.Mean)
	}
	if ours.Median > 1.1 || ours.Over > 0 {
		t.Errorf("peak/mean is %.3f at the median; %d rooms over a ceiling", ours.Median, ours.Over)
	}
}
