package pin

import (
	"slices"
	"testing"
)

func TestIncarnationsAreASet(t *testing.T) {
	set := IncarnationsOf([]Incarnation{9, 0, 3, 9})
	if !slices.Equal(set.All(), []Incarnation{3, 9}) || set != IncarnationsOf([]Incarnation{3, 9}) {
		t.Errorf("the set is %v", set.All())
	}
	if !set.Has(3) || !set.Has(9) || set.Has(4) || set.Has(0) || Incarnations("").Has(0) {
		t.Error("Has is wrong about a member")
	}
	many := make([]Incarnation, 2*MaxIncarnations)
	for i := range many {
		many[i] = Incarnation(i + 1)
	}
	if n := len(IncarnationsOf(many).All()); n != MaxIncarnations {
		t.Errorf("a set of %d, want at most %d", n, MaxIncarnations)
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
