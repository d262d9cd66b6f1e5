package node

import (
	"context"
	"fmt"
	"net"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast-rtc/holdfast/balancer"
	"github.com/holdfast-rtc/holdfast/internal/child"
	"github.com/holdfast-rtc/holdfast/internal/metrics"
	"github.com/holdfast-rtc/holdfast/internal/panics"
)

// FrontConfig is the configuration of a balancer. Each field is a flag of 'holdfast front', an environment variable and its default.
type FrontConfig struct {
	tlsFlags
	metricsFlag
	Name           string   `default:"front" help:"The name in the log."`
	Listen         string   `default:":7880" help:"host:port that clients connect to."`
	Backend        []string `placeholder:"HOST:PORT" help:"Signaling nodes; repeat, or separate with commas."`
	ProxyProtocol  bool     `help:"Say in the PROXY protocol, version 2, whom each connection is of. The signaling nodes need --proxy-protocol-from with this host's address."`
	MaxConnections int      `default:"${max_connections}" help:"Past it, or past a quarter of it from one address, a new connection is closed at once."`
}

func (c *FrontConfig) balancer() (balancer.Config, error) {
	cfg := balancer.DefaultConfig()
	cfg.Backends, cfg.MaxConnections, cfg.ProxyProtocol = c.Backend, c.MaxConnections, c.ProxyProtocol
	return cfg, Faults(CheckHostPort("listen", c.Listen), c.checkMetrics(), c.checkTLS(), cfg.Validate())
}

// Front is the process of a balancer.
type Front struct {
	config   FrontConfig
	balancer balancer.Config
}

// NewFront returns a *FaultsError with every fault of the configuration.
func NewFront(config FrontConfig) (*Front, error) {
	cfg, err := config.balancer()
	if err != nil {
		return nil, err
	}
	return &Front{config: config, balancer: cfg}, nil
}

// Name returns the name in the log.
func (p *Front) Name() string { return p.config.Name }

// Run balances until ctx ends.
func (p *Front) Run(ctx context.Context, process Process) error {
	cfg, log := p.balancer, process.Log
	var listening net.ListenConfig
	listener, err := listening.Listen(ctx, "tcp", p.config.Listen)
	if err != nil {
		return fmt.Errorf("listen for clients: %w", err)
	}
	secure, err := p.config.listenTLS(ctx, listener.Addr())
	if err != nil {
		_ = listener.Close()
		return fmt.Errorf("start the front: %w", err)
	}
	scraped, err := p.config.listenMetrics(ctx)
	if err != nil {
		_ = listener.Close()
		secure.close()
		return err
	}
	cfg.TLS = secure.config()
	log.Info("front is up", "listen", listener.Addr().String(), "backends", cfg.Backends)
	addresses := map[string]string{child.AddressHTTP: listener.Addr().String()}
	tellMetrics(scraped, addresses)
	if err := process.Announce(addresses); err != nil {
		return err
	}
	measured := metrics.New("front", p.config.Name, panics.New(), log)
	group, work := errgroup.WithContext(ctx)
	group.Go(func() error { return balancer.New(cfg, log).Serve(work, listener) })
	group.Go(func() error { return measured.Serve(work, scraped, nil) })
	group.Go(func() error { return secure.watch(work, log) })
	group.Go(func() error { return secure.serveRedirect(work, log) })
	return ended(work, group.Wait())
}
