package devcluster

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

func TestPortsAreBesideTheKernels(t *testing.T) {
	for _, test := range []struct{ low, high, first, last int }{
		{32768, 60999, 20000, 32767},
		{49152, 65535, 20000, 32767},
		{20999, 60999, 61000, 65535},
		{1024, 60999, 61000, 65535},
		{1024, 65535, 20000, 32767}, // there is no port beside
	} {
		if first, count := portsBeside(test.low, test.high); first != test.first || first+count-1 != test.last {
			t.Errorf("beside %d to %d: %d to %d, want %d to %d", test.low, test.high, first, first+count-1, test.first, test.last)
		}
	}
	path := filepath.Join(t.TempDir(), "range")
	if low, high := ephemeral(path); low != lowestEphemeral || high != highestEphemeral {
		t.Errorf("without the kernel's word: %d to %d", low, high)
	}
	if err := os.WriteFile(path, []byte("40000\t50000\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if low, high := ephemeral(path); low != 40000 || high != 50000 {
		t.Errorf("read %d to %d", low, high)
	}
}

// TestATakenPortIsReplaced whether it is the next of ours or the one of an earlier run; an address that a person chose stays.
func TestATakenPortIsReplaced(t *testing.T) {
	errTaken := errors.New("taken")
	s := &Supervisor{ports: &ports{first: 100, count: 4, next: 2}}
	taken := map[string]bool{"host:102": true, "host:90": true}
	a := &attempt{free: func(address string) error {
		if taken[address] {
			return errTaken
		}
		return nil
	}}
	choose := s.chooser(a)
	for _, test := range []struct{ address, earlier, want string }{
		{"host:0", "", "host:103"},
		{"host:0", "host:90", "host:100"},
		{"host:0", "host:91", "host:91"},
		{"host:7880", "", "host:7880"},
	} {
		if got := choose(test.address, test.earlier); got != test.want {
			t.Errorf("%s after %q: %s, want %s", test.address, test.earlier, got, test.want)
		}
	}
	if a.taken() {
		t.Errorf("none of %v is taken", a.given)
	}
	if taken["host:91"] = true; !a.taken() {
		t.Errorf("one of %v is taken", a.given)
	}
}

// outsideTheKernelsRange fails if any socket of this machine may be given the port of a node.
func outsideTheKernelsRange(t *testing.T, nodes []Node) {
	t.Helper()
	low, high := ephemeral("/proc/sys/net/ipv4/ip_local_port_range")
	if low-lowestPort < fewestPorts && 65535-high < fewestPorts {
		return // the kernel may give all ports to anybody
	}
	for _, n := range nodes {
		for kind, address := range n.Addresses {
			_, text, _ := net.SplitHostPort(address)
			if port, err := strconv.Atoi(text); err != nil || port >= low && port <= high {
				t.Errorf("%s: %s is at %s, which the kernel may give to anybody", n.Name, kind, address)
			}
		}
	}
}

// occupy takes an address until the test ends.
func occupy(t *testing.T, network, address string) {
	t.Helper()
	if network == "udp" {
		taken, err := net.ListenPacket(network, address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { taken.Close() })
		return
	}
	taken, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { taken.Close() })
}
