package control

import (
	"fmt"
	"net"
	"strconv"

	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

// PinProto writes a pin.
func PinProto(p pin.Pin) *Pin {
	return &Pin{Fence: FenceProto(p.Fence), Node: string(p.Node), Boot: string(p.Boot), Control: p.Control}
}

// Value reads a pin. Errors, also for nil, wrap pin.ErrCorrupt.
func (x *Pin) Value() (pin.Pin, error) {
	if x == nil {
		return pin.Pin{}, fmt.Errorf("%w: no pin", pin.ErrCorrupt)
	}
	p := pin.Pin{
		Fence:   pin.Fence{Epoch: x.GetFence().GetEpoch(), Nonce: x.GetFence().GetNonce()},
		Node:    ring.NodeID(x.GetNode()),
		Boot:    pin.BootID(x.GetBoot()),
		Control: x.GetControl(),
	}
	if err := p.Validate(); err != nil {
		return pin.Pin{}, err
	}
	return p, nil
}

// EgressProto writes egress.
func EgressProto(e headroom.Egress) *Egress {
	return &Egress{BitsPerSecond: e.BitsPerSecond, PacketsPerSecond: e.PacketsPerSecond}
}

// Value reads egress. A missing message is no egress.
func (x *Egress) Value() headroom.Egress {
	return headroom.Egress{BitsPerSecond: x.GetBitsPerSecond(), PacketsPerSecond: x.GetPacketsPerSecond()}
}

// FenceProto writes a fence.
func FenceProto(f pin.Fence) *Fence { return &Fence{Epoch: f.Epoch, Nonce: f.Nonce} }

// Value reads a fence. Its error, also for a missing fence, is pin.ErrCorrupt.
func (x *Fence) Value() (pin.Fence, error) {
	if x.GetEpoch() == 0 {
		return pin.Fence{}, fmt.Errorf("%w: no fence", pin.ErrCorrupt)
	}
	return pin.Fence{Epoch: x.GetEpoch(), Nonce: x.GetNonce()}, nil
}

// Hello is what a heartbeat tells.
type Hello struct {
	Node ring.NodeID
	Boot pin.BootID
	// Media is the host:port of the UDP socket.
	Media string

	// Protocol is 0 if the node is too old to say.
	Protocol uint32
	// Capabilities are sorted and separated by commas.
	Capabilities string
}

// Value reads a heartbeat. Its errors wrap pin.ErrCorrupt.
func (x *Heartbeat) Value() (Hello, error) {
	h := Hello{Node: ring.NodeID(x.GetNode()), Boot: pin.BootID(x.GetBoot()), Media: x.GetMedia()}
	// The names of nodes and boots obey the rules of a pin, so a pin checks them.
	named := pin.Pin{Fence: pin.Fence{Epoch: 1}, Node: h.Node, Boot: h.Boot, Control: "-"}
	if err := named.Validate(); err != nil {
		return Hello{}, fmt.Errorf("heartbeat: %w", err)
	}
	_, port, err := net.SplitHostPort(h.Media)
	if err != nil {
		return Hello{}, fmt.Errorf("%w: heartbeat: media address %q: %w", pin.ErrCorrupt, h.Media, err)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return Hello{}, fmt.Errorf("%w: heartbeat: media address %q has no port", pin.ErrCorrupt, h.Media)
	}
	h.Protocol, h.Capabilities = x.GetVersion(), capabilitiesIn(x.GetCapabilities())
	return h, nil
}
