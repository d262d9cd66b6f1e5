package testkit

import (
	"fmt"
	"log/slog"

	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

// BootOf is boot number n of node: higher is newer.
func BootOf(node string, n int) pin.BootID { return pin.BootID(fmt.Sprintf("%013d-%s", n, node)) }

// PinAt is a pin on boot n of node.
func PinAt(node string, n int, epoch, nonce uint64) pin.Pin {
	return pin.Pin{
		Fence: pin.Fence{Epoch: epoch, Nonce: nonce}, Node: ring.NodeID(node), Boot: BootOf(node, n), Control: node + ".test:7000",
	}
}

// Quiet returns a discarding logger.
func Quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }
