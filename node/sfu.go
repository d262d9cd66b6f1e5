package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"os"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/internal/backoff"
	"github.com/holdfast-rtc/holdfast/internal/build"
	"github.com/holdfast-rtc/holdfast/internal/child"
	"github.com/holdfast-rtc/holdfast/internal/events"
	"github.com/holdfast-rtc/holdfast/internal/metrics"
	"github.com/holdfast-rtc/holdfast/internal/panics"
	"github.com/holdfast-rtc/holdfast/internal/readiness"
	"github.com/holdfast-rtc/holdfast/internal/traces"
	"github.com/holdfast-rtc/holdfast/orchestrator"
	"github.com/holdfast-rtc/holdfast/orchestrator/pinowner"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/redisstore"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/sfu"
	"github.com/holdfast-rtc/holdfast/sfu/spread"
)

// SFUConfig is the configuration of a media node. Each field is a flag of 'holdfast sfu', an environment variable and its default.
type SFUConfig struct {
	nameFlag
	gossipFlags
	storeFlag
	metricsFlag
	tracesFlag
	ControlListen    string        `default:":7981" help:"host:port of the control service, for signaling nodes."`
	ControlAdvertise string        `placeholder:"HOST[:PORT]" help:"Where signaling nodes reach this node; the host's name when it listens on every interface."`
	MediaListen      string        `default:":7982" help:"UDP host:port of all media."`
	MediaTCP         string        `default:"${media_tcp}" placeholder:"PORT" help:"TCP port of media, for browsers whose UDP is blocked: 'same' as --media-listen, another one, or 'off'."`
	MediaAdvertise   []string      `placeholder:"IP" help:"Addresses that browsers reach the media socket at, where they differ from its own (NAT, containers)."`
	MediaSTUN        []string      `name:"media-stun" placeholder:"HOST:PORT" help:"Instead of --media-advertise: STUN servers that are asked at the start which address the media port has outside. The NAT must keep the port."`
	EgressBits       uint64        `default:"${egress_bits}" help:"Ceiling of egress in bits per second, past which no room is opened: by default 1 Gbit/s less a fifth for retransmissions and growth."`
	EgressPackets    uint64        `default:"${egress_packets}" help:"Ceiling of egress in packets per second: what a small shared machine forwards safely."`
	RoomPeople       int           `default:"${room_people}" help:"How many people a room may have. Their media counts against the ceilings of egress all the same."`
	ListedPerRoom    int           `default:"${listed_per_room}" help:"How many people a room lists. Beyond these, who only watches is counted, and listed once they raise a hand or write."`
	EgressBatch      bool          `default:"${egress_batch}" negatable:"" help:"Send the packets of one burst with one system call (Linux)."`
	TimerSlack       time.Duration `default:"1ms" help:"How late the kernel may wake the node's threads, so that it wakes them less often (Linux); 50us is what other programs have."`
	DrainTimeout     time.Duration `default:"${media_drain_timeout}" help:"How long rooms may take to leave this node without a gap, after SIGTERM or 'holdfast drain'; then they move by restarts. Kill the process 10 s later at the earliest."`
	Standby          bool          `help:"Let other media nodes of this flag go on with the calls of this one, without a word to the clients; both then have the keys of a call. It is on trial."`

	Grace time.Duration `hidden:"" help:"For tests: how long the place of a person without a signaling node is kept, if not as long as usual."`
}

// maxTimerSlack is what media bears: packets of a frame are held for 3 ms at most.
const maxTimerSlack = 10 * time.Millisecond

type sfuPlan struct {
	name string
	key  control.ClusterKey
	// config has a Boot that newBoot replaces.
	config sfu.Config
}

// plan returns every fault.
func (c *SFUConfig) plan() (sfuPlan, error) {
	name, nameFault := c.name()
	key, keyFault := c.key()
	cfg := sfu.DefaultConfig()
	cfg.Node, cfg.Boot = ring.NodeID(name), pin.NewBootID(time.Now())
	cfg.MediaAddress, cfg.AdvertiseIPs = c.MediaListen, c.MediaAdvertise
	cfg.MediaTCP = c.MediaTCP
	cfg.Loopback = isLoopback(c.MediaListen)
	cfg.CeilingBitsPerSecond, cfg.CeilingPacketsPerSecond = c.EgressBits, c.EgressPackets
	cfg.Limits.PeersPerRoom, cfg.Limits.ListedPerRoom = c.RoomPeople, c.ListedPerRoom
	cfg.EgressBatch, cfg.DrainTimeout = c.EgressBatch, c.DrainTimeout
	var slackFault error
	if c.TimerSlack <= 0 || c.TimerSlack > maxTimerSlack {
		slackFault = fmt.Errorf("--timer-slack: %v is not between 1ns and %v", c.TimerSlack, maxTimerSlack)
	}
	if c.Grace != 0 {
		cfg.Grace = c.Grace
	}
	if nameFault != nil {
		// A missing name is a fault already; this one keeps Validate from telling it twice.
		cfg.Node = "unnamed"
	}
	var stunFaults []error
	for _, server := range c.MediaSTUN {
		stunFaults = append(stunFaults, CheckHostPort("media-stun", server))
	}
	if len(c.MediaSTUN) > 0 && len(c.MediaAdvertise) > 0 {
		stunFaults = append(stunFaults, errors.New("--media-stun: give either it or --media-advertise"))
	}
	return sfuPlan{name: name, key: key, config: cfg}, Faults(
		errors.Join(stunFaults...), nameFault, keyFault, slackFault, c.check(), c.checkMetrics(), c.checkTraces(0), CheckHostPort("control-listen", c.ControlListen),
		CheckHostPort("media-listen", c.MediaListen), cfg.Validate())
}

// SFU is the process of a media node.
type SFU struct {
	config SFUConfig
	plan   sfuPlan
}

// NewSFU returns a *FaultsError with every fault of the configuration.
func NewSFU(config SFUConfig) (*SFU, error) {
	plan, err := config.plan()
	if err != nil {
		return nil, err
	}
	return &SFU{config: config, plan: plan}, nil
}

// Name returns the node's name.
func (p *SFU) Name() string { return p.plan.name }

// Run returns when the node has left the cluster, or has failed.
func (p *SFU) Run(ctx context.Context, process Process) error {
	if process.Own {
		if err := setTimerSlack(p.config.TimerSlack, child.Supervised()); err != nil {
			process.Log.Warn("the node costs more CPU than it need: the kernel does not let it have its timers late", "timer_slack", p.config.TimerSlack, "error", err)
		}
	}
	return aboveFormerLife(process.Log, func(former pin.BootID) error {
		node, err := p.config.wire(ctx, p.plan, former, process.Log)
		if err != nil {
			return err
		}
		return node.run(ctx, process.Terminate, process.Announce)
	})
}

// reportEvery is often enough to show a burst of new rooms before it is over.
const reportEvery = 500 * time.Millisecond

type sfuNode struct {
	log     *slog.Logger
	self    ring.NodeID
	control net.Listener
	server  *control.Server
	media   *sfu.Node
	owner   *pinowner.Owner
	// others has the connections to the control ports of other media nodes.
	others  *control.Pool
	store   *redisstore.Store
	cluster *cluster.Cluster
	quorum  *cluster.Quorum
	events  *events.Recorder
	traces  *traces.Tracer
	// watch follows the file of the cluster key.
	watch   func(ctx context.Context) error
	metrics *metrics.Registry
	// scraped is nil if nobody asks for metrics.
	scraped net.Listener
}

// confirmer breaks the cycle: the pin owner needs the node, and the node its owner.
type confirmer struct{ pins *pinowner.Owner }

func (c *confirmer) Confirm(ctx context.Context, room ring.RoomID, p pin.Pin) error {
	return c.pins.Confirm(ctx, room, p)
}

func (c *confirmer) Opening(ctx context.Context, room ring.RoomID) (pin.Pin, error) {
	return c.pins.Opening(ctx, room)
}

func (c *confirmer) StoreSteadyFor() time.Duration { return c.pins.StoreSteadyFor() }

// wire binds the sockets and joins the parts; it starts nothing.
func (c *SFUConfig) wire(ctx context.Context, plan sfuPlan, former pin.BootID, log *slog.Logger) (*sfuNode, error) {
	var listening net.ListenConfig
	listener, err := listening.Listen(ctx, "tcp", c.ControlListen)
	if err != nil {
		return nil, fmt.Errorf("listen for signaling nodes: %w", err)
	}
	n := &sfuNode{log: log, self: plan.config.Node, control: listener}
	if n.scraped, err = c.listenMetrics(ctx); err != nil {
		listener.Close()
		return nil, err
	}
	if len(c.MediaSTUN) > 0 {
		if plan.config.AdvertiseIPs, err = sfu.Discover(ctx, plan.config, c.MediaSTUN); err != nil {
			listener.Close()
			closeListener(n.scraped)
			return nil, fmt.Errorf("find the address that clients reach the media port at (--media-stun; --media-advertise needs no server): %w", err)
		}
		log.Info("address outside found", "servers", c.MediaSTUN, "media", plan.config.AdvertiseIPs)
	}
	if err := n.join(ctx, c, plan, former); err != nil {
		listener.Close()
		closeListener(n.scraped)
		return nil, err
	}
	return n, nil
}

func (n *sfuNode) join(ctx context.Context, c *SFUConfig, plan sfuPlan, former pin.BootID) (err error) {
	owner, guard := &confirmer{}, panics.New()
	n.metrics = metrics.New(string(cluster.RoleSFU), string(plan.config.Node), guard, n.log)
	if n.store, err = c.open(c.Cluster, n.metrics, guard, n.log); err != nil {
		return Faults(err)
	}
	n.events = events.NewRecorder(n.store, guard, n.log)
	plan.config.Panics, plan.config.Events = guard, n.events
	plan.config.Metrics = sfu.NewMetrics(n.metrics)
	pool := control.NewPool(plan.key, control.DefaultConfig())
	defer func() {
		if err != nil {
			pool.Close()
		}
	}()
	n.others, plan.config.Links = pool, pool.Links
	if plan.config.Control, err = reachable(c.ControlAdvertise, n.control.Addr(), os.Hostname); err != nil {
		return err
	}
	if c.Standby {
		plan.config.Neighbours = &neighbours{self: plan.config.Node, view: func() *cluster.View { return n.cluster.View() }, pool: pool}
	}
	plan.config.Boot = newBoot(ctx, n.store, cluster.RoleSFU, plan.config.Node, former, n.log)
	// No room is open before the cluster is made.
	plan.config.Candidates = func(room ring.RoomID) []spread.Candidate { return orchestrator.Candidates(n.cluster.View(), room) }
	if n.media, err = sfu.New(plan.config, owner, n.log); err != nil { //nolint:contextcheck // to bind a socket waits for nothing
		return err
	}
	self := cluster.Node{ID: plan.config.Node, Boot: plan.config.Boot, Role: cluster.RoleSFU, Control: plan.config.Control, Protocol: control.Protocol, Capabilities: control.Told(), Version: build.Current().Short()}
	if c.Standby {
		self.Capabilities = control.ToldWith(control.CapabilityStandby)
	}
	if self.Media, err = beside(self.Control, n.media.MediaAddress()); err != nil {
		return err
	}
	self.MediaIPs = strings.Join(n.media.MediaIPs(), ",")
	if n.cluster, err = cluster.New(c.config(self, former, plan.key, guard), n.log); err != nil {
		return Faults(err)
	}
	n.media.Measure(n.metrics)
	measureCluster(n.metrics, n.cluster.View, n.events.Lost)
	n.watch = func(ctx context.Context) error { return c.watchClusterKey(ctx, plan.key, n.cluster, n.log, func() {}) }
	n.quorum = cluster.NewQuorum(n.cluster)
	keeping := pinowner.DefaultConfig()
	keeping.Majority, keeping.Panics, keeping.Rosters = n.quorum.Majority, guard, n.media.Rosters()
	n.media.Rosters().Store = n.store
	n.owner = pinowner.New(n.store, n.media, keeping, n.log)
	owner.pins = n.owner
	n.server = control.NewServer(plan.key, guard, n.log)
	n.traces, err = c.tracer(0, self, guard, n.log)
	n.server.Trace(n.traces)
	n.traces.Measure(n.metrics)
	return err
}

// The goodbye comes first, while media and control still work: a closed port would be taken for a dead process.
func (n *sfuNode) run(ctx context.Context, terminate <-chan os.Signal, announce func(map[string]string) error) error {
	defer n.store.Close()
	defer n.others.Close()
	work, stopWork := context.WithCancel(context.WithoutCancel(ctx))
	defer stopWork()
	group, work := errgroup.WithContext(work)
	gossip, stopGossip := context.WithCancel(ctx)
	defer stopGossip()
	context.AfterFunc(work, stopGossip)
	unreached, emptied := &unwatched{self: n.self}, n.drain()
	group.Go(func() error {
		defer stopWork()
		return cmp.Or(n.cluster.Run(gossip), unreached.linger(ctx), emptied.linger(ctx))
	})
	group.Go(func() error { return emptied.run(work, terminate, stopGossip) })
	group.Go(func() error { return n.media.Run(work) })
	group.Go(func() error { return n.owner.Run(work) })
	group.Go(func() error { return n.media.Rosters().Run(work) })
	group.Go(func() error { return followWebhooks(work, n.store, n.media.Rosters().Tell, n.log) })
	group.Go(func() error { return n.store.Run(work) })
	group.Go(func() error { return n.quorum.Run(work) })
	group.Go(func() error { return n.events.Run(work) })
	group.Go(func() error { return n.traces.Run(work) })
	group.Go(func() error { return n.publishLoad(work, unreached, stopGossip) })
	group.Go(func() error {
		return n.server.Serve(work, n.control, n.media.Register)
	})
	group.Go(func() error { return n.watch(work) })
	group.Go(func() error { return n.metrics.Serve(work, n.scraped, readiness.Handler(n.ready().check)) })
	group.Go(func() error { return n.tell(work, announce) })
	return ended(work, group.Wait())
}

func (n *sfuNode) ready() sfuReadiness {
	return sfuReadiness{view: n.cluster.View, draining: func() bool { return n.media.DrainState().Draining }, askStore: n.store.Ping}
}

func (n *sfuNode) drain() *sfuDrain {
	return &sfuDrain{media: n.media, log: n.log, announce: n.cluster.SetDraining, askStore: func(ctx context.Context) error {
		_, err := n.store.Incarnations(ctx)
		return err
	}}
}

// tell reports our addresses once gossip is open.
func (n *sfuNode) tell(ctx context.Context, announce func(map[string]string) error) error {
	select {
	case <-n.cluster.Running():
	case <-ctx.Done():
		return nil
	}
	addresses := map[string]string{
		child.AddressControl: n.control.Addr().String(),
		child.AddressMedia:   n.media.MediaAddress().String(),
		child.AddressGossip:  n.cluster.LocalAddr(),
	}
	tellMetrics(n.scraped, addresses)
	n.log.Info("media node is up", "version", build.Current().Short(), "control", addresses[child.AddressControl],
		"media", addresses[child.AddressMedia], "gossip", addresses[child.AddressGossip], "clients_are_told", n.media.MediaIPs())
	if err := n.store.Ping(ctx); err != nil && ctx.Err() == nil {
		n.log.Error("the store does not answer: no room can be opened here until it does (is --store right, is Redis running?)", "error", err)
	}
	return announce(addresses)
}

// publishLoad leaves when nobody can use the node.
func (n *sfuNode) publishLoad(ctx context.Context, unreached *unwatched, leave func()) error {
	report := func() {
		n.media.Panics().Catch(n.log, "a load report broke", func() {
			n.cluster.SetLoad(n.report())
			if unreached.leaves(n.cluster.View(), time.Now()) {
				n.log.Error("no signaling node reaches the control port, and others are reached: leaving, so that the rooms move", "after", unwatchedFor)
				leave()
			}
		})
	}
	report()
	backoff.Every(ctx, reportEvery, report)
	return nil
}

func (n *sfuNode) report() cluster.Load {
	load := n.media.NextReport()
	// Whoever follows the drain counts the rooms down to an empty node.
	if now := n.media.DrainState(); now.Draining {
		load.Rooms, load.Peers = uint32(now.Rooms), uint32(now.Peers)
	}
	return cluster.Load{
		Seq: load.Seq, EgressBitsPerSecond: load.EgressBitsPerSecond, EgressPacketsPerSecond: load.EgressPacketsPerSecond,
		CeilingBitsPerSecond: load.CeilingBitsPerSecond, CeilingPacketsPerSecond: load.CeilingPacketsPerSecond,
		Rooms: load.Rooms, Peers: load.Peers, Synced: n.owner.Synced(),
		Watchers:           uint32(n.media.Watchers()),
		FloorBitsPerSecond: load.Floor.BitsPerSecond, FloorPacketsPerSecond: load.Floor.PacketsPerSecond,
		Limited: secondsSince(load.LimitedSince),
	}
}

// secondsSince rounds up: 0 is for the zero time only.
func secondsSince(at time.Time) uint32 {
	if at.IsZero() {
		return 0
	}
	return uint32(min(time.Since(at).Seconds(), math.MaxInt32)) + 1
}
