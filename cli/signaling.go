package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/signaling"
	"github.com/holdfast-rtc/holdfast/signaling/access"
)

type signalingCommand struct {
	logFlags
	nameFlag
	gossipFlags
	storeFlag
	keyFlags
	limitFlags
	turnFlags
	tlsFlags
	Listen           string        `default:":7880" help:"host:port of the page, the REST API and the WebSocket."`
	Advertise        string        `placeholder:"HOST[:PORT]" help:"Where other signaling nodes reach this one; the host's name when it listens on every interface."`
	ControlListen    string        `default:":7983" help:"host:port of the control service, for other signaling nodes: direct messages between users pass there."`
	ControlAdvertise string        `placeholder:"HOST[:PORT]" help:"Where other signaling nodes reach the control service; the host of --advertise unless given."`
	Origin           []string      `placeholder:"HOST" help:"Hosts (patterns such as *.example.org) whose pages may use this node, besides its own."`
	MaxParticipants  int           `default:"0" help:"How many people a room holds when its token says nothing; the others wait in line. 0: no cap."`
	Shed             int           `default:"0" help:"How many clients a second this node sends to the others while it has far more than they have. 0: it waits until they have caught up. Needs a balancer that asks /readyz, or holdfast front."`
	NoRelief         bool          `help:"Never move rooms off media nodes that are near their ceilings, or far above the others. Set it on all signaling nodes or on none."`
	ExpectedSize     int           `default:"0" help:"How many people a new room is expected to hold when its token says nothing; 0 takes three."`
	ResumeGrace      time.Duration `default:"6h" help:"How long after its access token's end a session may be resumed, by whoever lost the connection or whose signaling node died."`
	InviteURL        string        `placeholder:"URL" help:"Where the page's invitations lead: an address of your application, with {room} in the room's place, such as https://app.example.org/join?room={room}."`
	DemandRoomCreate bool          `help:"Let only tokens with the roomCreate grant open a room; the others join rooms that are open."`
	DrainTimeout     time.Duration `default:"20s" help:"How long clients may take to go to the other signaling nodes, after SIGTERM; those that are left are then sent away at once. Kill the process 10 s later at the earliest."`
	HSTS             time.Duration `name:"hsts" default:"0s" help:"How long browsers shall use nothing but https at this name (Strict-Transport-Security), such as 8760h; 0: not said. A browser heeds it over https only."`
	Dev              bool          `help:"Hand out tokens to anybody who asks. Never where strangers can reach the port."`
}

type signalingPlan struct {
	name   string
	key    control.ClusterKey
	keys   *access.Keyring
	config signaling.Config
}

// plan returns every fault.
func (c *signalingCommand) plan() (signalingPlan, error) {
	name, nameFault := c.name()
	key, keyFault := c.key()
	keys, keysFault := c.keyring()
	if nameFault != nil {
		name = "unnamed" // it is a fault already
	}
	cfg := signaling.DefaultConfig(ring.NodeID(name))
	cfg.Dev, cfg.Origins, cfg.ExpectedSize, cfg.ResumeGrace, cfg.DemandRoomCreate, cfg.InviteURL = c.Dev, c.Origin, c.ExpectedSize, c.ResumeGrace, c.DemandRoomCreate, c.InviteURL
	cfg.MaxParticipants, cfg.ShedPerSecond = c.MaxParticipants, c.Shed
	cfg.HSTS = c.HSTS
	limitFault := c.apply(&cfg)
	var drainFault error
	if c.DrainTimeout <= 0 {
		drainFault = fmt.Errorf("--drain-timeout: %v is not a positive duration", c.DrainTimeout)
	}
	return signalingPlan{name: name, key: key, keys: keys, config: cfg}, faults(
		nameFault, keyFault, keysFault, limitFault, drainFault, c.check(), c.checkTurn(c.tlsFlags), c.checkTLS(), checkHostPort("listen", c.Listen), checkHostPort("control-listen", c.ControlListen), cfg.Validate())
}

func (c *signalingCommand) Run(ctx context.Context, s streams) error {
	plan, err := c.plan()
	if err != nil {
		return err
	}
	log, announce := c.logger(s.err, plan.name), lifeline(s)
	return aboveFormerLife(log, func(former pin.BootID) error {
		node, err := c.wire(ctx, plan, former, log)
		if err != nil {
			return fmt.Errorf("start the signaling node: %w", err)
		}
		ctx, stop := untilLeft(ctx, s.terminate, c.DrainTimeout, node.server.Leave, node.log)
		defer stop()
		return node.run(ctx, announce)
	})
}
