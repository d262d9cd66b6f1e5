package node

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/failover"
	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/internal/build"
	"github.com/holdfast-rtc/holdfast/internal/child"
	"github.com/holdfast-rtc/holdfast/internal/events"
	"github.com/holdfast-rtc/holdfast/internal/metrics"
	"github.com/holdfast-rtc/holdfast/internal/panics"
	"github.com/holdfast-rtc/holdfast/internal/traces"
	"github.com/holdfast-rtc/holdfast/internal/webhook"
	"github.com/holdfast-rtc/holdfast/orchestrator"
	"github.com/holdfast-rtc/holdfast/people/messaging"
	"github.com/holdfast-rtc/holdfast/people/presence"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/redisstore"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/signaling"
	"github.com/holdfast-rtc/holdfast/signaling/access"
	"github.com/holdfast-rtc/holdfast/signaling/mediacheck"
	"github.com/holdfast-rtc/holdfast/signaling/nodelink"
	"github.com/holdfast-rtc/holdfast/web"
)

// SignalingConfig is the configuration of a signaling node. Each field is a flag of 'holdfast signaling', an environment variable and its
// default.
type SignalingConfig struct {
	nameFlag
	gossipFlags
	storeFlag
	metricsFlag
	KeyringConfig
	limitFlags
	turnFlags
	tlsFlags
	tracesFlag
	Listen           string        `default:":7880" help:"host:port of the page, the REST API and the WebSocket."`
	Advertise        string        `placeholder:"HOST[:PORT]" help:"Where other signaling nodes reach this one; the host's name when it listens on every interface."`
	ControlListen    string        `default:":7983" help:"host:port of the control service, for other signaling nodes: direct messages between users pass there."`
	ControlAdvertise string        `placeholder:"HOST[:PORT]" help:"Where other signaling nodes reach the control service; the host of --advertise unless given."`
	Origin           []string      `placeholder:"HOST" help:"Hosts (patterns such as *.example.org) whose pages may use this node, besides its own."`
	PathPrefix       string        `placeholder:"/PATH" help:"Under which path of its host a proxy serves this node, if the proxy passes the path on, such as /call. Not needed where the proxy takes it off (docs/NETWORK.md)."`
	MaxParticipants  int           `default:"0" help:"How many people a room holds when its token says nothing; the others wait in line. 0: no cap."`
	Shed             int           `default:"0" help:"How many clients a second this node sends to the others while it has far more than they have. 0: it waits until they have caught up. Needs a balancer that asks /readyz, or holdfast front."`
	NoRelief         bool          `help:"Never move rooms off media nodes that are near their ceilings, or far above the others. Set it on all signaling nodes or on none."`
	ExpectedSize     int           `default:"0" help:"How many people a new room is expected to hold when its token says nothing; 0 takes three."`
	ResumeGrace      time.Duration `default:"${resume_grace}" help:"How long after its access token's end a session may be resumed, by whoever lost the connection or whose signaling node died."`
	InviteURL        string        `placeholder:"URL" help:"Where the page's invitations lead: an address of your application, with {room} in the room's place, such as https://app.example.org/join?room={room}."`
	DemandRoomCreate bool          `help:"Let only tokens with the roomCreate grant open a room; the others join rooms that are open."`
	DrainTimeout     time.Duration `default:"20s" help:"How long clients may take to go to the other signaling nodes, after SIGTERM; those that are left are then sent away at once. Kill the process 10 s later at the earliest."`
	WebhookURL       []string      `placeholder:"URL" help:"Where to send what happens in rooms, in the form of LiveKit's webhooks (docs/WEBHOOKS.md). The same on all signaling nodes."`
	WebhookKey       string        `placeholder:"KEY" help:"The name of the API key that signs webhooks; the first unless given."`
	HSTS             time.Duration `name:"hsts" default:"0s" help:"How long browsers shall use nothing but https at this name (Strict-Transport-Security), such as 8760h; 0: not said. A browser heeds it over https only."`
	TracesSample     float64       `default:"1" help:"The share of the joins that are traced, from 0 to 1; see --traces-url. Failovers are always traced."`
	Dev              bool          `help:"Hand out tokens to anybody who asks. Never where strangers can reach the port."`
}

type signalingPlan struct {
	name   string
	key    control.ClusterKey
	keys   *access.Keyring
	config signaling.Config
}

// plan returns every fault.
func (c *SignalingConfig) plan() (signalingPlan, error) {
	name, nameFault := c.name()
	key, keyFault := c.key()
	keys, keysFault := c.Keyring()
	if nameFault != nil {
		// A missing name is a fault already; this one keeps Validate from telling it twice.
		name = "unnamed"
	}
	cfg := signaling.DefaultConfig(ring.NodeID(name))
	cfg.Dev, cfg.Origins, cfg.ExpectedSize, cfg.ResumeGrace, cfg.DemandRoomCreate, cfg.InviteURL = c.Dev, c.Origin, c.ExpectedSize, c.ResumeGrace, c.DemandRoomCreate, c.InviteURL
	cfg.MaxParticipants, cfg.ShedPerSecond = c.MaxParticipants, c.Shed
	cfg.HSTS, cfg.PathPrefix = c.HSTS, c.PathPrefix
	limitFault := c.apply(&cfg)
	var drainFault error
	if c.DrainTimeout <= 0 {
		drainFault = fmt.Errorf("--drain-timeout: %v is not a positive duration", c.DrainTimeout)
	}
	return signalingPlan{name: name, key: key, keys: keys, config: cfg}, Faults(
		nameFault, keyFault, keysFault, limitFault, drainFault, c.check(), c.checkMetrics(), c.checkTraces(c.TracesSample), c.checkTurn(c.tlsFlags), c.checkTLS(), c.checkWebhooks(keys), CheckHostPort("listen", c.Listen), CheckHostPort("control-listen", c.ControlListen), cfg.Validate())
}

// Signaling is the process of a signaling node.
type Signaling struct {
	config SignalingConfig
	plan   signalingPlan
}

// NewSignaling returns a *FaultsError with every fault of the configuration.
func NewSignaling(config SignalingConfig) (*Signaling, error) {
	plan, err := config.plan()
	if err != nil {
		return nil, err
	}
	return &Signaling{config: config, plan: plan}, nil
}

// Name returns the node's name.
func (p *Signaling) Name() string { return p.plan.name }

// Run returns when the node has left the cluster, or has failed.
func (p *Signaling) Run(ctx context.Context, process Process) error {
	return aboveFormerLife(process.Log, func(former pin.BootID) error {
		node, err := p.config.wire(ctx, p.plan, former, process.Log)
		if err != nil {
			return fmt.Errorf("start the signaling node: %w", err)
		}
		ctx, stop := untilLeft(ctx, process.Terminate, p.config.DrainTimeout, node.server.Leave, node.log)
		defer stop()
		return node.run(ctx, process.Announce)
	})
}

type signalingNode struct {
	log      *slog.Logger
	listener net.Listener
	control  net.Listener
	links    *nodelink.Links
	serving  *control.Server
	store    *redisstore.Store
	pool     *control.Pool
	cluster  *cluster.Cluster
	server   *signaling.Server
	failover *failover.Failover
	presence *presence.Tracker
	events   *events.Recorder
	traces   *traces.Tracer
	// webhooks is nil without --webhook-url.
	webhooks *webhook.Sender
	// watch follows the files of keys and certificates, and serves the plain port that leads to https.
	watch []func(ctx context.Context) error
	tried *mediacheck.Checker
	// turn is nil if the node does not relay.
	turn *turnNode
	// tls is nil if the page's port is plain.
	tls     *pageTLS
	metrics *metrics.Registry
	// scraped is nil if nobody asks for metrics.
	scraped net.Listener
}

// wire binds the socket and joins the parts; it starts nothing.
func (c *SignalingConfig) wire(ctx context.Context, plan signalingPlan, former pin.BootID, log *slog.Logger) (*signalingNode, error) {
	var listening net.ListenConfig
	listener, err := listening.Listen(ctx, "tcp", c.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen for clients: %w", err)
	}
	nodes, err := listening.Listen(ctx, "tcp", c.ControlListen)
	if err != nil {
		listener.Close()
		return nil, fmt.Errorf("listen for signaling nodes (--control-listen): %w", err)
	}
	n := &signalingNode{log: log, listener: listener, control: nodes}
	if n.scraped, err = c.listenMetrics(ctx); err == nil {
		n.tls, err = c.listenTLS(ctx, listener.Addr())
	}
	if err == nil {
		n.turn, err = c.listenTurn(ctx, n.tls.config())
	}
	if err == nil {
		err = n.join(ctx, c, plan, former)
	}
	if err != nil {
		listener.Close()
		nodes.Close()
		closeListener(n.scraped)
		n.turn.close()
		n.tls.close()
		return nil, err
	}
	return n, nil
}

func (n *signalingNode) join(ctx context.Context, c *SignalingConfig, plan signalingPlan, former pin.BootID) (err error) {
	guard := panics.New()
	n.metrics = metrics.New(string(cluster.RoleSignaling), string(plan.config.Node), guard, n.log)
	if n.store, err = c.open(c.Cluster, n.metrics, guard, n.log); err != nil {
		return Faults(err)
	}
	self := cluster.Node{ID: plan.config.Node, Boot: newBoot(ctx, n.store, cluster.RoleSignaling, plan.config.Node, former, n.log), Role: cluster.RoleSignaling, Protocol: control.Protocol, Capabilities: control.Told(), Version: build.Current().Short()}
	if self.HTTP, err = reachable(c.Advertise, n.listener.Addr(), os.Hostname); err != nil {
		return err
	}
	if self.Control, err = c.controlAddress(self.HTTP, n.control.Addr()); err != nil {
		return err
	}
	if n.cluster, err = cluster.New(c.config(self, former, plan.key, guard), n.log); err != nil {
		return Faults(err)
	}
	n.pool = control.NewPool(plan.key, control.DefaultConfig())
	placement := orchestrator.DefaultConfig()
	n.events = events.NewRecorder(n.store, guard, n.log)
	if n.traces, err = c.tracer(c.TracesSample, self, guard, n.log); err != nil {
		return err
	}
	placement.StoreClock, placement.Panics, placement.Events = n.store.Now, guard, n.events
	placement.Metrics = orchestrator.NewMetrics(n.metrics)
	n.preferTold(&placement)
	placer := orchestrator.New(n.store, n.cluster, prober{n.pool}, placement, n.log)
	users := n.store.Presence(presence.DefaultTiming())
	n.presence = presence.New(presence.DefaultTiming(), users, users, guard, n.log)
	n.links = nodelink.New(messaging.Peer{ID: self.ID, Boot: self.Boot}, n.pool, n.cluster, users, guard, n.log)
	n.tried, n.webhooks = mediacheck.New(self.ID, n.pool, n.cluster, guard, n.log), n.newWebhooks(c, plan, guard)
	n.serving = control.NewServer(plan.key, guard, n.log)
	parts := signaling.Parts{
		Messages: n.links,
		Placer:   placer, Pool: n.pool, Views: n.cluster, Store: n.store,
		Keys: plan.keys, Static: web.Static(), Panics: guard, Presence: n.presence, Users: users, Rosters: n.store, Doors: n.store,
		Reports: n.cluster, MediaSockets: n.tried, Events: n.store, Recorder: n.events, Traces: n.traces,
		Metrics: signaling.NewMetrics(n.metrics),
	}
	if killer := child.NewKiller(); killer != nil {
		parts.Killer = killer
	}
	if plan.config.ICEServers, parts.RelayCounters, err = n.joinTurn(c.turnFlags, self.HTTP, plan.key, guard); err != nil {
		return err
	}
	plan.config.TLS = n.tls.config()
	n.server, err = signaling.New(plan.config, parts, n.log)
	if err != nil {
		return err
	}
	n.measure()
	n.watch = []func(context.Context) error{
		n.turn.watch(n.log),
		func(ctx context.Context) error { return n.tls.watch(ctx, n.log) },
		func(ctx context.Context) error { return n.tls.serveRedirect(ctx, n.log) },
		func(ctx context.Context) error {
			return c.watchClusterKey(ctx, plan.key, n.cluster, n.log, n.server.RenewICEServers)
		},
		func(ctx context.Context) error { return c.watchKeyring(ctx, plan.keys, n.log) },
	}
	n.failover = failover.New(n.moving(c, plan, guard), n.cluster, n.server.Hub(), placer, n.store, n.pool, n.log)
	return nil
}

// preferTold has rooms go to nodes that have something of them, as sessions were told. No room is moved before the server is made.
func (n *signalingNode) preferTold(placement *orchestrator.Config) {
	placement.Branches = func(room ring.RoomID) []pin.BootID { return n.server.Hub().BranchesOf(room) }
	placement.Standby = func(room ring.RoomID) pin.BootID { return n.server.Hub().StandbyOf(room) }
}

// moving is failover's configuration.
func (n *signalingNode) moving(c *SignalingConfig, plan signalingPlan, guard *panics.Guard) failover.Config {
	moving := failover.DefaultConfig()
	moving.Self, moving.Panics, moving.Events, moving.NoRelief, moving.Traces = plan.config.Node, guard, n.events, c.NoRelief, n.traces
	moving.Metrics = n.metrics.NewFailover(func() int { return n.failover.Active() })
	moving.Standby = func(room ring.RoomID, owner ring.NodeID, need headroom.Egress) ring.NodeID {
		view := n.cluster.View()
		if !view.Nodes[owner].Can(control.CapabilityStandby) {
			return ""
		}
		by, _ := orchestrator.Standby(view, room, owner, "", need, nil)
		return by.ID
	}
	return moving
}

// measure has Prometheus read the parts that count by themselves.
func (n *signalingNode) measure() {
	n.server.Measure(n.metrics, n.turn.counters())
	measureCluster(n.metrics, n.cluster.View, n.events.Lost)
	n.webhooks.Measure(n.metrics)
	n.traces.Measure(n.metrics)
}

// controlAddress has the host of the HTTP address unless one is given: it is the same machine.
func (c *SignalingConfig) controlAddress(http string, bound net.Addr) (string, error) {
	if c.ControlAdvertise != "" || !unspecified(bound.String()) {
		return reachable(c.ControlAdvertise, bound, os.Hostname)
	}
	host, _, err := net.SplitHostPort(http)
	if err != nil {
		return "", fmt.Errorf("read the address %s: %w", http, err)
	}
	return advertised(host, bound)
}

func (n *signalingNode) run(ctx context.Context, announce func(map[string]string) error) error {
	defer n.store.Close()
	defer n.pool.Close()
	group, work := errgroup.WithContext(ctx)
	group.Go(func() error { return n.cluster.Run(work) })
	group.Go(func() error { return n.store.Run(work) })
	group.Go(func() error { return n.failover.Run(work) })
	group.Go(func() error { return n.presence.Run(work) })
	group.Go(func() error { return n.events.Run(work) })
	group.Go(func() error { return n.traces.Run(work) })
	group.Go(func() error { return n.links.Run(work) })
	group.Go(func() error { return n.tried.Run(work) })
	group.Go(func() error {
		return n.serving.Serve(work, n.control, n.links.Register, control.AnswerStaying(n.server.StayingRooms))
	})
	group.Go(func() error { return n.server.Run(work, n.listener) })
	if n.webhooks != nil {
		group.Go(func() error { return n.webhooks.Run(work) })
	}
	if n.turn != nil {
		group.Go(func() error { return n.turn.relay.Run(work, n.turn.at) })
	}
	for _, watch := range n.watch {
		group.Go(func() error { return watch(work) })
	}
	group.Go(func() error { return n.metrics.Serve(work, n.scraped, nil) })
	group.Go(func() error { return n.tell(work, announce) })
	return ended(work, group.Wait())
}

// tell asks the store once, so that a wrong address is said at the start.
func (n *signalingNode) tell(ctx context.Context, announce func(map[string]string) error) error {
	select {
	case <-n.cluster.Running():
	case <-ctx.Done():
		return nil
	}
	addresses := map[string]string{
		child.AddressHTTP:    n.listener.Addr().String(),
		child.AddressControl: n.control.Addr().String(),
		child.AddressGossip:  n.cluster.LocalAddr(),
	}
	n.turn.tell(addresses)
	tellMetrics(n.scraped, addresses)
	n.log.Info("signaling node is up", "version", build.Current().Short(), "listen", addresses[child.AddressHTTP], "control", addresses[child.AddressControl], "gossip", addresses[child.AddressGossip])
	if err := n.store.Ping(ctx); err != nil && ctx.Err() == nil {
		n.log.Error("the store does not answer: nobody can join until it does (is --store right, is Redis running?)", "error", err)
	}
	return announce(addresses)
}
