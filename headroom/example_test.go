package headroom_test

import (
	"fmt"

	"github.com/holdfast-rtc/holdfast/headroom"
)

// A signaling node asks whether a media node takes a room of ten people before it places the room there.
func ExampleTakes() {
	ceiling := headroom.Egress{BitsPerSecond: 800_000_000, PacketsPerSecond: 100_000}
	cost := headroom.Expect(10).Cost()
	for _, part := range []float64{0.5, 0.99, 1} {
		load := ceiling.Part(part)
		fmt.Printf("at %.0f %% of the ceiling: %t\n", 100*part, headroom.Takes(load, cost, ceiling))
	}
	// Output:
	// at 50 % of the ceiling: true
	// at 99 % of the ceiling: false
	// at 100 % of the ceiling: false
}

// Of a load's two dimensions the fuller one counts.
func ExampleEgress_Share() {
	load := headroom.Egress{BitsPerSecond: 200_000_000, PacketsPerSecond: 60_000}
	ceiling := headroom.Egress{BitsPerSecond: 800_000_000, PacketsPerSecond: 100_000}
	fmt.Println(load.Share(ceiling))
	// Output:
	// 0.6
}
