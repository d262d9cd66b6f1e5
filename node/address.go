package node

import (
	"errors"
	"fmt"
	"net"
	"strings"
)

// CheckHostPort refuses an address that is not host:port. flag is the name without its dashes.
func CheckHostPort(flag, address string) error {
	if _, _, err := net.SplitHostPort(address); err != nil {
		return fmt.Errorf("--%s %q: give host:port, or :port for every interface", flag, address)
	}
	return nil
}

// advertised returns the wanted host, with the bound port if none is given. An address bound to every interface needs a name.
func advertised(wanted string, bound net.Addr) (string, error) {
	_, port, err := net.SplitHostPort(bound.String())
	if err != nil {
		return "", fmt.Errorf("read the bound address %s: %w", bound, err)
	}
	if wanted == "" {
		return bound.String(), nil
	}
	if _, _, err := net.SplitHostPort(wanted); err == nil {
		return wanted, nil
	}
	return net.JoinHostPort(strings.Trim(wanted, "[]"), port), nil
}

func unspecified(address string) bool {
	host, _, err := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	return err == nil && (host == "" || (ip != nil && ip.IsUnspecified()))
}

func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	return err == nil && (host == "localhost" || (ip != nil && ip.IsLoopback()))
}

// reachable is the address that others are told; the host's name if nothing better is known.
func reachable(wanted string, bound net.Addr, name func() (string, error)) (string, error) {
	if wanted == "" && unspecified(bound.String()) {
		host, err := name()
		if err != nil {
			return "", errors.New("name the address that others reach this node at (--control-advertise)")
		}
		wanted = host
	}
	address, err := advertised(wanted, bound)
	if err != nil {
		return "", fmt.Errorf("advertise %s: %w", bound, err)
	}
	return address, nil
}

// beside is the media address as signaling nodes are told it: the control address's host, unless the media socket has
// one of its own.
func beside(controlAddress string, media net.Addr) (string, error) {
	if !unspecified(media.String()) {
		return media.String(), nil
	}
	host, _, err := net.SplitHostPort(controlAddress)
	if err != nil {
		return "", fmt.Errorf("read the control address %s: %w", controlAddress, err)
	}
	return advertised(host, media)
}
