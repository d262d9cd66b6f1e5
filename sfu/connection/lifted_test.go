package connection

import "testing"

// TestLiftedPriority: it is above that of all nodes that stood by since the answer of a lower epoch, and below the page's own candidate.
func TestLiftedPriority(t *testing.T) {
	const first, pages = 1795898694086, 1<<31 - 1
	const addresses = 8 // of a node, and of the one that stands by
	if least := liftedPriority(1<<18) - 2*addresses; least <= answeredPriority {
		t.Errorf("the lowest address has priority %d, which an answer without a lift has, too", least)
	}
	for epoch := uint64(first); epoch < first+1000; epoch++ {
		moved := liftedPriority(epoch)
		if next := liftedPriority(epoch+1) - 2*addresses; next <= moved+1 {
			t.Fatalf("after a move by a standby to %d, an answer gives %d", moved+1, next)
		}
		if moved >= pages {
			t.Fatalf("priority %d", moved)
		}
	}
}
