package cli

import (
	"context"
	"fmt"
	"net"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast-rtc/holdfast/balancer"
	"github.com/holdfast-rtc/holdfast/internal/child"
)

type balancerCommand struct {
	logFlags
	tlsFlags
	Name           string   `default:"front" help:"The name in the log."`
	Listen         string   `default:":7880" help:"host:port that clients connect to."`
	Backend        []string `placeholder:"HOST:PORT" help:"Signaling nodes; repeat, or separate with commas."`
	ProxyProtocol  bool     `help:"Say in the PROXY protocol, version 2, whom each connection is of. The signaling nodes need --proxy-protocol-from with this host's address."`
	MaxConnections int      `default:"4096" help:"Past it, or past a quarter of it from one address, a new connection is closed at once."`
}

func (c *balancerCommand) config() (balancer.Config, error) {
	cfg := balancer.DefaultConfig()
	cfg.Backends, cfg.MaxConnections, cfg.ProxyProtocol = c.Backend, c.MaxConnections, c.ProxyProtocol
	return cfg, faults(checkHostPort("listen", c.Listen), c.checkTLS(), cfg.Validate())
}

func (c *balancerCommand) Run(ctx context.Context, s streams) error {
	cfg, err := c.config()
	if err != nil {
		return err
	}
	announce := lifeline(s)
	var listening net.ListenConfig
	listener, err := listening.Listen(ctx, "tcp", c.Listen)
	if err != nil {
		return fmt.Errorf("listen for clients: %w", err)
	}
	log := c.logger(s.err, c.Name)
	secure, err := c.listenTLS(ctx, listener.Addr())
	if err != nil {
		_ = listener.Close()
		return fmt.Errorf("start the front: %w", err)
	}
	cfg.TLS = secure.config()
	log.Info("front is up", "listen", listener.Addr().String(), "backends", cfg.Backends)
	if err := announce(map[string]string{child.AddressHTTP: listener.Addr().String()}); err != nil {
		return err
	}
	group, work := errgroup.WithContext(ctx)
	group.Go(func() error { return balancer.New(cfg, log).Serve(work, listener) })
	group.Go(func() error { return secure.watch(work, log) })
	group.Go(func() error { return secure.serveRedirect(work, log) })
	return ended(work, group.Wait())
}
