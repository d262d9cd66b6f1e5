package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/internal/child"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/sfu"
)

type sfuCommand struct {
	logFlags
	nameFlag
	gossipFlags
	storeFlag
	ControlListen    string        `default:":7981" help:"host:port of the control service, for signaling nodes."`
	ControlAdvertise string        `placeholder:"HOST[:PORT]" help:"Where signaling nodes reach this node; the host's name when it listens on every interface."`
	MediaListen      string        `default:":7982" help:"UDP host:port of all media."`
	MediaTCP         string        `default:"same" placeholder:"PORT" help:"TCP port of media, for browsers whose UDP is blocked: 'same' as --media-listen, another one, or 'off'."`
	MediaAdvertise   []string      `placeholder:"IP" help:"Addresses that browsers reach the media socket at, where they differ from its own (NAT, containers)."`
	MediaSTUN        []string      `name:"media-stun" placeholder:"HOST:PORT" help:"Instead of --media-advertise: STUN servers that are asked at the start which address the media port has outside. The NAT must keep the port."`
	EgressBits       uint64        `default:"800000000" help:"Ceiling of egress in bits per second, past which no room is opened: by default 1 Gbit/s less a fifth for retransmissions and growth."`
	EgressPackets    uint64        `default:"100000" help:"Ceiling of egress in packets per second: what a small shared machine forwards safely."`
	EgressBatch      bool          `default:"true" negatable:"" help:"Send the packets of one burst with one system call (Linux)."`
	TimerSlack       time.Duration `default:"1ms" help:"How late the kernel may wake the node's threads, so that it wakes them less often (Linux); 50us is what other programs have."`
	DrainTimeout     time.Duration `default:"20s" help:"How long rooms may take to leave this node without a gap, after SIGTERM or 'holdfast drain'; then they move by restarts. Kill the process 10 s later at the earliest."`

	Grace time.Duration `hidden:"" help:"For tests: how long the place of a person without a signaling node is kept, if not as long as usual."`
}

// maxTimerSlack is what media bears: packets of a frame are held for 3 ms at most.
const maxTimerSlack = 10 * time.Millisecond

type storeFlag struct {
	Store string `default:"redis://127.0.0.1:6379" placeholder:"URL" help:"Redis 7 or later: redis://host:port, redis+sentinel://host:port,host:port/master or redis+cluster://host:port,host:port; rediss for TLS. See docs/STORE.md."`
}

type sfuPlan struct {
	name   string
	key    control.ClusterKey
	config sfu.Config // its Boot is replaced by that of newBoot
}

// plan returns every fault.
func (c *sfuCommand) plan() (sfuPlan, error) {
	name, nameFault := c.name()
	key, keyFault := c.key()
	cfg := sfu.DefaultConfig()
	cfg.Node, cfg.Boot = ring.NodeID(name), pin.NewBootID(time.Now())
	cfg.MediaAddress, cfg.AdvertiseIPs = c.MediaListen, c.MediaAdvertise
	cfg.MediaTCP = c.MediaTCP
	cfg.Loopback = isLoopback(c.MediaListen)
	cfg.CeilingBitsPerSecond, cfg.CeilingPacketsPerSecond = c.EgressBits, c.EgressPackets
	cfg.EgressBatch, cfg.DrainTimeout = c.EgressBatch, c.DrainTimeout
	var slackFault error
	if c.TimerSlack <= 0 || c.TimerSlack > maxTimerSlack {
		slackFault = fmt.Errorf("--timer-slack: %v is not between 1ns and %v", c.TimerSlack, maxTimerSlack)
	}
	if c.Grace != 0 {
		cfg.Grace = c.Grace
	}
	if nameFault != nil {
		cfg.Node = "unnamed" // it is a fault already
	}
	var stunFaults []error
	for _, server := range c.MediaSTUN {
		stunFaults = append(stunFaults, checkHostPort("media-stun", server))
	}
	if len(c.MediaSTUN) > 0 && len(c.MediaAdvertise) > 0 {
		stunFaults = append(stunFaults, errors.New("--media-stun: give either it or --media-advertise"))
	}
	return sfuPlan{name: name, key: key, config: cfg}, faults(
		errors.Join(stunFaults...), nameFault, keyFault, slackFault, c.check(), checkHostPort("control-listen", c.ControlListen),
		checkHostPort("media-listen", c.MediaListen), cfg.Validate())
}

func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	return err == nil && (host == "localhost" || (ip != nil && ip.IsLoopback()))
}

func (c *sfuCommand) Run(ctx context.Context, s streams) error {
	plan, err := c.plan()
	if err != nil {
		return err
	}
	log := c.logger(s.err, plan.name)
	if s.own {
		if err := setTimerSlack(c.TimerSlack, child.Supervised()); err != nil {
			log.Warn("the node costs more CPU than it need: the kernel does not let it have its timers late", "timer_slack", c.TimerSlack, "error", err)
		}
	}
	announce := lifeline(s)
	return aboveFormerLife(log, func(former pin.BootID) error {
		node, err := c.wire(ctx, plan, former, log)
		if err != nil {
			return err
		}
		return node.run(ctx, s.terminate, announce)
	})
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
