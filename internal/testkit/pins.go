package testkit

import (
	"fmt"
	"log/slog"

	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

// BootOf returns boot number n of a node. A higher number is a newer boot.
func BootOf(node string, n int) pin.BootID { return pin.BootID(fmt.Sprintf("%013d-%s", n, node)) }

// PinAt returns a pin on boot number n of a node.
func PinAt(node string, n int, epoch, nonce uint64) pin.Pin {
	return pin.Pin{
		Fence: pin.Fence{Epoch: epoch, Nonce: nonce}, Node: ring.NodeID(node), Boot: BootOf(node, n), Control: node + ".test:7000",
	}
}

// Quiet returns a logger that discards everything.
func Quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }
