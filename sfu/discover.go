package sfu

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pion/stun/v4"
)

const (
	// RFC 8489 section 6.2.1 allows about as long on a lossy path.
	discoverFor = 10 * time.Second
	// discoverAgain is the first pause between requests. It doubles each time.
	discoverAgain = 500 * time.Millisecond
	// discoverOther is how long the other family is waited for once one has answered.
	discoverOther = 2 * time.Second
)

var errNotAnswered = errors.New("no STUN server has answered")

// A PortError tells of a NAT that changes the media port's number.
type PortError struct {
	Inside  uint16
	Outside netip.AddrPort
}

func (e *PortError) Error() string {
	return fmt.Sprintf("the NAT shows UDP port %d of this node as %s: have it map the port one to one", e.Inside, e.Outside)
}

// Discover asks STUN servers (RFC 8489 section 5) for the media port's outside addresses, one of each family, for
// Config.AdvertiseIPs. It binds the port: call it before New. A family without an answer keeps a public address of
// this machine.
func Discover(ctx context.Context, cfg Config, servers []string) (ips []string, err error) {
	bound, err := net.ResolveUDPAddr("udp", cfg.MediaAddress)
	if err != nil {
		return nil, fmt.Errorf("resolve media address %s: %w", cfg.MediaAddress, err)
	}
	ctx, cancel := context.WithTimeout(ctx, discoverFor)
	defer cancel()
	type outcome struct {
		family string
		at     netip.Addr
		err    error
	}
	families := []string{"4", "6"}
	if !bound.IP.IsUnspecified() && bound.IP != nil {
		families = []string{"6"}
		if bound.IP.To4() != nil {
			families = []string{"4"}
		}
	}
	came := make(chan outcome, len(families))
	for _, family := range families {
		go func() {
			at, err := discoverFamily(ctx, family, bound, servers)
			came <- outcome{family, at, err}
		}()
	}
	var faults []error
	for range families {
		switch o := <-came; {
		case o.err == nil:
			ips = append(ips, o.at.String())
			defer time.AfterFunc(discoverOther, cancel).Stop()
		case errors.As(o.err, new(*PortError)):
			return nil, o.err
		default:
			faults = append(faults, fmt.Errorf("IPv%s: %w", o.family, o.err))
		}
	}
	if len(ips) == 0 {
		return nil, errors.Join(faults...)
	}
	return withPublic(ips, bound, cfg), nil
}

// withPublic adds a public address of a family that none was found of.
func withPublic(found []string, bound *net.UDPAddr, cfg Config) []string {
	cfg.AdvertiseIPs = nil
	own, _ := candidates(bound, cfg)
	for _, at := range own {
		is4 := at.Addr().Is4()
		same := func(text string) bool { ip, err := netip.ParseAddr(text); return err == nil && ip.Is4() == is4 }
		if ip := at.Addr(); ip.IsGlobalUnicast() && !ip.IsPrivate() && !slices.ContainsFunc(found, same) {
			found = append(found, ip.String())
		}
	}
	slices.Sort(found)
	return found
}

// discoverFamily asks all servers at once; the first answer counts.
func discoverFamily(ctx context.Context, family string, bound *net.UDPAddr, servers []string) (netip.Addr, error) {
	local := *bound
	if local.IP.IsUnspecified() {
		local.IP = nil
	}
	socket, err := net.ListenUDP("udp"+family, &local)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("bind the media port: %w", err)
	}
	defer func() { _ = socket.Close() }()
	defer context.AfterFunc(ctx, func() { _ = socket.SetReadDeadline(time.Now()) })()
	at, err := addressesOf(ctx, family, servers)
	if len(at) == 0 {
		return netip.Addr{}, fmt.Errorf("%w: none of %s has an address of this family: %w", errNotAnswered, strings.Join(servers, ", "), err)
	}
	request, err := stun.Build(stun.TransactionID, stun.BindingRequest, stun.Fingerprint)
	if err != nil {
		return netip.Addr{}, err
	}
	asked, stop := context.WithCancel(ctx)
	var asking sync.WaitGroup
	defer asking.Wait()
	defer stop()
	asking.Go(func() {
		for pause := discoverAgain; ; pause *= 2 {
			for _, server := range at {
				// A request that cannot be sent is like a lost one: it is sent again.
				_, _ = socket.WriteToUDPAddrPort(request.Raw, server)
			}
			select {
			case <-time.After(pause):
			case <-asked.Done():
				return
			}
		}
	})
	buffer := make([]byte, 1500)
	for {
		count, from, err := socket.ReadFromUDPAddrPort(buffer)
		if err != nil {
			return netip.Addr{}, fmt.Errorf("%w: %s", errNotAnswered, strings.Join(servers, ", "))
		}
		from = netip.AddrPortFrom(from.Addr().Unmap(), from.Port())
		outside, ok := mapped(buffer[:count], request.TransactionID)
		if !ok || !slices.Contains(at, from) {
			continue
		}
		if inside := uint16(socket.LocalAddr().(*net.UDPAddr).Port); outside.Port() != inside { //nolint:forcetypeassert // it is a UDP socket
			return netip.Addr{}, &PortError{Inside: inside, Outside: outside}
		}
		return outside.Addr(), nil
	}
}

func addressesOf(ctx context.Context, family string, servers []string) (at []netip.AddrPort, err error) {
	for _, server := range servers {
		host, portText, split := net.SplitHostPort(server)
		port, number := strconv.ParseUint(portText, 10, 16)
		ips, lookup := net.DefaultResolver.LookupNetIP(ctx, "ip"+family, host)
		err = errors.Join(err, split, number, lookup)
		for _, ip := range ips {
			at = append(at, netip.AddrPortFrom(ip.Unmap(), uint16(port)))
		}
	}
	return at, err
}

func mapped(packet []byte, id [stun.TransactionIDSize]byte) (netip.AddrPort, bool) {
	message := stun.Message{Raw: slices.Clone(packet)}
	var outside stun.XORMappedAddress
	if message.Decode() != nil || message.Type != stun.BindingSuccess || message.TransactionID != id || outside.GetFrom(&message) != nil {
		return netip.AddrPort{}, false
	}
	ip, ok := netip.AddrFromSlice(outside.IP)
	return netip.AddrPortFrom(ip.Unmap(), uint16(outside.Port)), ok && !ip.IsUnspecified() && outside.Port > 0
}
