//go:build linux

package hosts

import (
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
)

// ErrHurt means that the cable is hurt already.
var ErrHurt = errors.New("the cable is hurt already")

type fault struct {
	rules bool
	cable *cable
}

// Hurt hurts a host's cable until Mend.
func (n *Network) Hurt(name string, f Fault) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	h, known := n.hosts[name]
	switch {
	case !known:
		return fmt.Errorf("%w: %s", ErrNoSuchHost, name)
	case h.fault != fault{}:
		return fmt.Errorf("%w: %s", ErrHurt, name)
	}
	return n.hub.do(func() (err error) {
		if f.Delay > 0 {
			h.fault.cable, err = interpose(h.port, f.Delay)
			return err
		}
		// A rule on the host itself would give the sender an error.
		err = nft(fmt.Sprintf(`table netdev %[1]s {
	counter frames { }
	chain out { type filter hook ingress device %[1]s priority 0; %[2]s; }
	chain in { type filter hook egress device %[1]s priority 0; %[3]s; }
}`, h.port, n.rule(f, "daddr", "sport"), n.rule(f, "saddr", "dport")))
		h.fault.rules = err == nil
		return err
	})
}

// address and port are nft's words.
func (n *Network) rule(f Fault, address, port string) string {
	var match []string
	if len(f.From) > 0 {
		var from []string
		for _, other := range f.From {
			if h, known := n.hosts[other]; known {
				other = h.IP
			}
			from = append(from, other)
		}
		match = append(match, "ip "+address+" { "+strings.Join(from, ", ")+" }")
	}
	if f.UDP {
		match = append(match, "meta l4proto udp")
	}
	if f.Port > 0 {
		match = append(match, fmt.Sprintf("tcp %s %d", port, f.Port))
	}
	if f.Percent > 0 {
		match = append(match, fmt.Sprintf("numgen random mod 100 < %d", f.Percent))
	}
	return strings.Join(append(match, "counter name frames drop"), " ")
}

// Mend returns how many frames were dropped or delayed.
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
