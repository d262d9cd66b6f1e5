package cluster

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"

	"github.com/hashicorp/memberlist"

	"github.com/holdfast-rtc/holdfast/internal/panics"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

// keyBytes is the length of a key of AES-256.
const keyBytes = 32

const (
	maxIDBytes = 128
	// maxAddressBytes is the bound of an address in a pin.
	maxAddressBytes = 200
	// maxHaste makes a probe last 2 ms.
	maxHaste = 100
)

// Config describes this process to the cluster.
type Config struct {
	// Node is this process.
	Node Node

	// Bind is the IP:port of UDP and TCP. Without an IP, it is all IPv4 interfaces.
	Bind string

	// Advertise is the host or host:port that others use; empty stands for Bind.
	Advertise string

	// Join lists the host:port of seeds. This node may be among them.
	Join []string

	// Name is the name of the cluster. Members of another cluster are refused.
	Name string

	// Keys have keyBytes each. The first one encrypts, and any of them decrypts.
	Keys [][]byte

	// Solo says that this process may be the first of the cluster.
	Solo bool

	// RefuseOlderBoot ends Run with an *OlderBootError if the first member that this process meets knows a newer boot
	// of this node's name.
	RefuseOlderBoot bool

	// ConfirmDeaths makes nodes that gossip reports dead Suspect until ConfirmDead.
	ConfirmDeaths bool

	// Haste divides the times of failure detection, for tests. 0 stands for 1.
	Haste       float64
	LosePercent int

	// Panics counts caught panics. If it is nil, New makes a guard of its own.
	Panics *panics.Guard
}

// LogValue hides the keys.
func (c Config) LogValue() slog.Value {
	return slog.GroupValue(
		slog.String("node", string(c.Node.ID)), slog.String("boot", string(c.Node.Boot)), slog.String("role", string(c.Node.Role)),
		slog.String("bind", c.Bind), slog.String("advertise", c.Advertise),
		slog.Any("join", c.Join), slog.Bool("solo", c.Solo),
	)
}

// Validate returns every fault at once.
func (c Config) Validate() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if err := validID(string(c.Node.ID)); err != nil {
		fault("node name %q: %w", c.Node.ID, err)
	}
	if err := validID(string(c.Node.Boot)); err != nil {
		fault("boot id %q: %w", c.Node.Boot, err)
	}
	if !c.Node.Role.known() {
		fault("role %q is neither %s nor %s", c.Node.Role, RoleSFU, RoleSignaling)
	}
	if c.Node.Role == RoleSFU && (c.Node.Control == "" || c.Node.Media == "") {
		fault("an SFU node needs a control and a media address")
	}
	for _, a := range []struct{ name, address string }{
		{"control", c.Node.Control}, {"media", c.Node.Media}, {"HTTP", c.Node.HTTP},
	} {
		if err := validAddress(a.address); err != nil {
			fault("%s address %q: %w", a.name, a.address, err)
		}
	}
	draining := c.Node
	draining.Draining, draining.Overdue = true, true
	if n := len(encodeMeta(draining)); n > memberlist.MetaMaxSize {
		fault("addresses take %d bytes of gossip metadata, at most %d fit: use shorter host names", n, memberlist.MetaMaxSize)
	}
	if len(c.Keys) == 0 {
		fault("there is no gossip key")
	}
	for _, key := range c.Keys {
		if len(key) != keyBytes {
			fault("gossip key has %d bytes, want %d", len(key), keyBytes)
		}
	}
	if !c.Solo && len(c.Join) == 0 {
		fault("no members to join: give at least one, or say that this node may be the first")
	}
	if c.Haste < 0 || c.Haste > maxHaste || c.LosePercent < 0 || c.LosePercent > 100 {
		fault("haste %g and %d lost of 100 datagrams: give 0 to %d, and 0 to 100", c.Haste, c.LosePercent, maxHaste)
	}
	if err := pin.ValidCluster(c.Name); c.Name != "" && err != nil {
		faults = append(faults, err)
	}
	c.validateGossip(fault)
	return errors.Join(faults...)
}

func (c Config) validateGossip(fault func(format string, args ...any)) {
	host, _, err := splitHostPort(c.Bind)
	switch ip := net.ParseIP(host); {
	case err != nil:
		fault("gossip bind address %q: %w", c.Bind, err)
	case host != "" && ip == nil:
		fault("gossip bind address %q: the host must be an IP address", c.Bind)
	case ip != nil && ip.To4() == nil && ip.IsUnspecified() && c.Advertise == "":
		fault("gossip bind address %q: name the address to advertise", c.Bind)
	}
	if c.Advertise != "" {
		if _, _, err := splitHostPort(withPort(c.Advertise)); err != nil {
			fault("gossip advertise address %q: %w", c.Advertise, err)
		}
	}
	for _, seed := range c.Join {
		if _, port, err := splitHostPort(seed); err != nil || port == 0 || strings.Contains(seed, "/") {
			fault("join address %q is not host:port", seed)
		}
	}
}

func memberName(node Node) string {
	return string(node.Role) + "/" + string(node.ID) + "@" + string(node.Boot)
}

func parseMemberName(name string) (Node, error) {
	role, rest, _ := strings.Cut(name, "/")
	id, boot, ok := strings.Cut(rest, "@")
	if !ok || !Role(role).known() {
		return Node{}, fmt.Errorf("%w: member name %q is not role/node@boot", errForeign, name)
	}
	if err := errors.Join(validID(id), validID(boot)); err != nil {
		return Node{}, fmt.Errorf("%w: member name %q: %w", errForeign, name, err)
	}
	return Node{ID: ring.NodeID(id), Boot: pin.BootID(boot), Role: Role(role)}, nil
}

func validID(id string) error {
	if id == "" || len(id) > maxIDBytes {
		return fmt.Errorf("%d bytes long, want 1 to %d", len(id), maxIDBytes)
	}
	if i := strings.IndexFunc(id, func(c rune) bool { return c <= ' ' || c > '~' || strings.ContainsRune(`|@/"\`, c) }); i >= 0 {
		return fmt.Errorf("character %d is not printable ASCII or one of | @ / \" \\", i+1)
	}
	return nil
}

func validAddress(address string) error {
	if address == "" {
		return nil
	}
	if len(address) > maxAddressBytes {
		return fmt.Errorf("%d bytes long, at most %d", len(address), maxAddressBytes)
	}
	if i := strings.IndexFunc(address, func(c rune) bool { return c <= ' ' || c > '~' || strings.ContainsRune(`|"\<>&`, c) }); i >= 0 {
		return fmt.Errorf("character %d does not belong in an address", i+1)
	}
	host, port, err := splitHostPort(address)
	if err == nil && (host == "" || port == 0) {
		err = errors.New("host and port are both needed")
	}
	return err
}

func withPort(address string) string {
	if _, _, err := net.SplitHostPort(address); err == nil {
		return address
	}
	return net.JoinHostPort(strings.Trim(address, "[]"), "0")
}

func splitHostPort(address string) (host string, port int, err error) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return "", 0, err
	}
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return "", 0, fmt.Errorf("port %q is not a number from 0 to 65535", text)
	}
	return host, int(n), nil
}
