package pin

import (
	"slices"
	"testing"
)

func TestGenerationsAreASet(t *testing.T) {
	set := GenerationsOf([]Generation{9, 0, 3, 9})
	if !slices.Equal(set.All(), []Generation{3, 9}) || set != GenerationsOf([]Generation{3, 9}) {
		t.Errorf("the set is %v", set.All())
	}
	if !set.Has(3) || !set.Has(9) || set.Has(4) || set.Has(0) || Generations("").Has(0) {
		t.Error("Has is wrong about a member")
	}
	many := make([]Generation, 2*MaxGenerations)
	for i := range many {
		many[i] = Generation(i + 1)
	}
	if n := len(GenerationsOf(many).All()); n != MaxGenerations {
		t.Errorf("a set of %d, want at most %d", n, MaxGenerations)
	}
}

func TestNoncesSayHowTheirPinWasMade(t *testing.T) {
	for range 100 {
		if fresh := (Fence{Epoch: 1, Nonce: NewFreshNonce()}); !fresh.Fresh() {
			t.Fatalf("%v is not fresh", fresh)
		}
		if moved := (Fence{Epoch: 1, Nonce: NewNonce()}); moved.Fresh() {
			t.Fatalf("%v is fresh", moved)
		}
	}
}
