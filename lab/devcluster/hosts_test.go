package devcluster

import (
	"slices"
	"testing"
)

// TestHostsAreToldAsFlags and read again, and each node binds its host's address.
func TestHostsAreToldAsFlags(t *testing.T) {
	o := Defaults()
	o.Hosts = map[string]Host{"sfu-2": {IP: "10.77.0.13", Space: "/proc/1/fd/7"}}
	flags := o.hostFlags()
	if len(flags) != 2 || flags[0] != "--host" {
		t.Fatalf("the flags are %v", flags)
	}
	name, h, err := ParseHost(flags[1])
	if err != nil || name != "sfu-2" || h != o.Hosts["sfu-2"] {
		t.Errorf("%s was read as %s %+v, %v", flags[1], name, h, err)
	}
	for node, want := range map[string]string{"sfu-1": "127.0.0.1:0", "sfu-2": "10.77.0.13:0"} {
		args := (&member{name: node, role: RoleSFU}).args(nil, nil, o, func(address, _ string) string { return address })
		for _, flag := range []string{"--gossip-listen", "--control-listen", "--media-listen"} {
			if i := slices.Index(args, flag); i < 0 || args[i+1] != want {
				t.Errorf("%s runs with %v, want %s %s", node, args, flag, want)
			}
		}
	}
	if _, h, err := ParseHost("sfu-1=::1"); err != nil || h != (Host{IP: "::1"}) {
		t.Errorf("a host in our namespace: %+v, %v", h, err)
	}
	for _, wrong := range []string{"", "sfu-1", "sfu-1=10.0.0.1@", "sfu-1=host@/x", "=10.0.0.1@/x"} {
		if _, _, err := ParseHost(wrong); err == nil {
			t.Errorf("%q was accepted", wrong)
		}
	}
}
