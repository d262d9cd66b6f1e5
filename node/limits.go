package node

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/holdfast-rtc/holdfast/signaling"
	"github.com/holdfast-rtc/holdfast/signaling/limits"
)

type limitFlags struct {
	MaxSockets        int      `default:"${max_sockets}" help:"How many people may be connected to this node at once; some 50 KB of memory each."`
	TrustedProxies    []string `placeholder:"NETWORK" help:"Addresses or networks (10.0.0.0/8) of balancers that say in X-Forwarded-For whom they bring, and in X-Forwarded-Host, if they change Host, which host was asked for."`
	ProxyProtocolFrom []string `placeholder:"NETWORK" help:"Addresses or networks of balancers that pass bytes and say in the PROXY protocol, version 1 or 2, whom they bring: holdfast front --proxy-protocol, haproxy, a cloud's network balancer."`
	LimitIdentity     string   `placeholder:"joins=10:100,..." help:"What one identity may do in all rooms together: joins=PERSECOND:ATONCE, rooms=PERSECOND:ATONCE, offers=PERSECOND:ATONCE, sockets=NUMBER, each or all of them off. Default joins=10:100,rooms=1:20,offers=10:100,sockets=200."`
	LimitKey          string   `placeholder:"joins=..." help:"The same of one API key. Default off."`
	LimitAddress      string   `placeholder:"joins=50:1000,..." help:"The same of one IPv4 address or IPv6 /64. Default joins=50:1000,rooms=5:200,offers=100:2000,sockets=2000."`
}

// apply returns every fault of the flags.
func (f limitFlags) apply(cfg *signaling.Config) error {
	var faults []error
	for _, row := range []struct {
		flag, text string
		quota      *limits.Quota
	}{
		{"limit-identity", f.LimitIdentity, &cfg.Limits.Quotas.Identity},
		{"limit-key", f.LimitKey, &cfg.Limits.Quotas.Key},
		{"limit-address", f.LimitAddress, &cfg.Limits.Quotas.Address},
	} {
		if err := row.quota.Set(row.text); err != nil {
			faults = append(faults, fmt.Errorf("--%s: %w", row.flag, err))
		}
	}
	var proxies, balancers error
	cfg.TrustedProxies, proxies = networks("trusted-proxies", f.TrustedProxies)
	cfg.ProxyProtocolFrom, balancers = networks("proxy-protocol-from", f.ProxyProtocolFrom)
	cfg.MaxSockets = f.MaxSockets
	return errors.Join(append(faults, proxies, balancers)...)
}

func networks(flag string, texts []string) (all []netip.Prefix, err error) {
	for _, text := range texts {
		network, fault := netip.ParsePrefix(text)
		if ip, other := netip.ParseAddr(text); other == nil {
			network, fault = netip.PrefixFrom(ip, ip.BitLen()), nil
		}
		if fault != nil {
			err = errors.Join(err, fmt.Errorf("--%s %q: give an address, or a network such as 10.0.0.0/8", flag, text))
			continue
		}
		all = append(all, network.Masked())
	}
	return all, err
}
