package pin_test

import (
	"fmt"

	"github.com/holdfast-rtc/holdfast/pin"
)

// A store keeps a pin as a text that it compares as a whole.
func ExampleParse() {
	p, err := pin.Parse("1|1769000000000|00000000000000ff|sfu-1|1768000000000-abc|10.0.0.1:7981")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(p.Node, p.Control, p.Fence.Epoch)
	fmt.Println(p.Encode())

	_, err = pin.Parse("sfu-1")
	fmt.Println(err)
	// Output:
	// sfu-1 10.0.0.1:7981 1769000000000
	// 1|1769000000000|00000000000000ff|sfu-1|1768000000000-abc|10.0.0.1:7981
	// corrupt pin: "sfu-1" is not version 1 with 6 fields
}

// Two nodes that claim the same room at the same time agree on who has it: the higher fence wins.
func ExampleFence_Less() {
	first := pin.Fence{Epoch: 1769000000000, Nonce: 7}
	atOnce := pin.Fence{Epoch: 1769000000000, Nonce: 9}
	later := pin.Fence{Epoch: 1769000000001, Nonce: 1}
	fmt.Println(first.Less(atOnce), atOnce.Less(later), later.Less(first))
	// Output:
	// true true false
}
