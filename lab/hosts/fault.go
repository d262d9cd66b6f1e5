//go:build linux

package hosts

import (
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

// ErrHurt is returned when something is done already to a cable.
var ErrHurt = errors.New("the cable is hurt already")

// fault is what is done to a cable: rules, or a relay between.
type fault struct {
	rules bool
	cable *cable
}

// Cut drops every frame between a host and the others that are named, and every one at all
// when none is. The others may be hosts' names or addresses.
func (n *Network) Cut(name string, from ...string) error {
	if len(from) == 0 {
		return n.filter(name, "drop", "drop")
	}
	return n.between(name, from, "", "")
}

// CutUDP drops every UDP datagram between a host and the others, and no other packet.
func (n *Network) CutUDP(name string, from ...string) error {
	return n.between(name, from, "meta l4proto udp ", "meta l4proto udp ")
}

// CutPort drops what passes between a TCP port of a host and the others.
func (n *Network) CutPort(name string, port uint16, from ...string) error {
	return n.between(name, from, fmt.Sprintf("tcp sport %d ", port), fmt.Sprintf("tcp dport %d ", port))
}

// between drops the frames between a host and the others that match: out is for those that leave the host.
func (n *Network) between(name string, from []string, out, in string) error {
	addresses := make([]string, 0, len(from))
	for _, other := range from {
		if h, known := n.hosts[other]; known {
			other = h.IP
		}
		addresses = append(addresses, other)
	}
	these := "{ " + strings.Join(addresses, ", ") + " }"
	return n.filter(name, "ip daddr "+these+" "+out+"counter name frames drop", "ip saddr "+these+" "+in+"counter name frames drop")
}

// Lose drops so many of a hundred frames, by chance, both ways.
func (n *Network) Lose(name string, percent int) error {
	if percent < 1 || percent > 100 {
		return fmt.Errorf("lose %d of 100 frames: give 1 to 100", percent)
	}
	rule := fmt.Sprintf("numgen random mod 100 < %d counter name frames drop", percent)
	return n.filter(name, rule, rule)
}

// filter puts rules on what comes out of the host's cable and on what goes into it. They are at the
// switch's side: a rule on the host itself would be an error to whoever sends.
func (n *Network) filter(name, out, in string) error {
	return n.hurt(name, func(h *host) error {
		script := fmt.Sprintf(`table netdev %[1]s {
	counter frames { }
	chain out { type filter hook ingress device %[1]s priority 0; %[2]s; }
	chain in { type filter hook egress device %[1]s priority 0; %[3]s; }
}`, h.port, counted(out), counted(in))
		err := n.hub.do(func() error { return nft(script) })
		h.fault.rules = err == nil
		return err
	})
}

// counted has a bare drop counted.
func counted(rule string) string {
	if rule == "drop" {
		return "counter name frames drop"
	}
	return rule
}

// Delay lets every frame of a host wait on its way, in each direction.
func (n *Network) Delay(name string, by time.Duration) error {
	return n.hurt(name, func(h *host) error {
		return n.hub.do(func() (err error) {
			h.fault.cable, err = interpose(h.port, "switch", by)
			return err
		})
	})
}

func (n *Network) hurt(name string, do func(*host) error) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	h, known := n.hosts[name]
	switch {
	case !known:
		return fmt.Errorf("%w: %s", ErrNoSuchHost, name)
	case h.fault != fault{}:
		return fmt.Errorf("%w: %s", ErrHurt, name)
	}
	return do(h)
}

// Mend makes a cable as good as new, and says how many frames were dropped or delayed.
func (n *Network) Mend(name string) (frames uint64, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	h, known := n.hosts[name]
	if !known {
		return 0, fmt.Errorf("%w: %s", ErrNoSuchHost, name)
	}
	err = n.hub.do(func() (err error) {
		switch {
		case h.fault.rules:
			frames, err = dropped(h.port)
			return errors.Join(err, nft("delete table netdev "+h.port))
		case h.fault.cable != nil:
			frames, err = h.fault.cable.remove()
		}
		return err
	})
	h.fault = fault{}
	return frames, err
}

// dropped reads what the rules have counted.
func dropped(port string) (uint64, error) {
	out, err := exec.Command("nft", "-j", "list", "counter", "netdev", port, "frames").Output()
	if err != nil {
		return 0, fmt.Errorf("read what was dropped: %w", err)
	}
	var answer struct {
		Nftables []struct {
			Counter *struct {
				Packets uint64 `json:"packets"`
			} `json:"counter"`
		} `json:"nftables"`
	}
	if err := json.Unmarshal(out, &answer); err != nil {
		return 0, fmt.Errorf("decode what was dropped: %w", err)
	}
	for _, one := range answer.Nftables {
		if one.Counter != nil {
			return one.Counter.Packets, nil
		}
	}
	return 0, errors.New("nft does not say what was dropped")
}
