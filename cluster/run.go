package cluster

import (
	"context"
	"fmt"
	"log"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"
)

const (
	leaveTimeout    = time.Second
	announceTimeout = time.Second
)

// bindError is what binding the address says. memberlist's error has it as text only, so that nobody could tell a port that is taken.
func bindError(address string, otherwise error) error {
	tcp, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	defer tcp.Close()
	udp, err := net.ListenPacket("udp", address)
	if err != nil {
		return err
	}
	udp.Close()
	return otherwise
}

func (c *Cluster) gossip(ctx context.Context) error {
	config, err := c.memberlistConfig(ctx)
	if err != nil {
		return err
	}
	sockets, err := newTransport(config, c.config.LosePercent, c.addresses.hear)
	if err != nil {
		return fmt.Errorf("open gossip sockets on %s: %w", c.config.Bind, bindError(c.config.Bind, err))
	}
	config.Transport = c.wrap(sockets)
	list, err := memberlist.Create(config)
	if err != nil {
		_ = sockets.Shutdown()
		return fmt.Errorf("start gossip on %s: %w", c.config.Bind, err)
	}
	local := list.LocalNode().Address()
	c.local.Store(&local)
	c.post(func() {
		if c.config.Solo {
			c.members.settledAt = time.Now()
		}
		c.publish(nil)
	})
	close(c.running)
	if c.config.LosePercent > 0 {
		c.log.Warn("gossip datagrams are thrown away on purpose", "percent", c.config.LosePercent)
	}
	c.log.Info("gossip open", "node", c.config.Node.ID, "boot", c.config.Node.Boot, "address", local, "solo", c.config.Solo, "join", c.config.Join)

	work, stopWork := context.WithCancel(ctx)
	var workers sync.WaitGroup
	workers.Go(func() { c.joinSeeds(work, list) })
	workers.Go(func() { c.announce(work, list) })
	workers.Go(func() { c.exchangeWithBlocked(work, list, config.ProbeInterval) })
	select {
	case <-ctx.Done():
		c.leave(list)
	case newer := <-c.older:
		err = &OlderBootError{Newer: newer}
		c.leave(list)
	case <-c.crash:
	}
	stopWork()
	closed := list.Shutdown()
	workers.Wait()
	if err == nil && closed != nil {
		err = fmt.Errorf("close gossip sockets: %w", closed)
	}
	return err
}

func (c *Cluster) memberlistConfig(ctx context.Context) (*memberlist.Config, error) {
	config := tuning(c.config.Haste)
	config.Name, config.Label = c.name, c.config.Name
	// With a keyring, memberlist refuses plain text.
	config.Keyring = c.keyring
	config.Logger = log.New(memberlistWriter{c}, "", 0)
	config.Delegate, config.Events = delegate{c}, delegate{c}
	config.BindAddr, config.BindPort, _ = splitHostPort(c.config.Bind)
	if config.BindAddr == "" {
		config.BindAddr = "0.0.0.0"
	}
	config.AdvertisePort = config.BindPort
	if c.config.Advertise == "" {
		return config, nil
	}
	host, port, err := splitHostPort(withPort(c.config.Advertise))
	if err != nil {
		return nil, fmt.Errorf("gossip advertise address: %w", err)
	}
	addresses, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil || len(addresses) == 0 {
		return nil, fmt.Errorf("resolve gossip advertise address %s: %w", host, err)
	}
	config.AdvertiseAddr = addresses[0].Unmap().String()
	if port != 0 {
		config.AdvertisePort = port
	}
	return config, nil
}

func (c *Cluster) announce(ctx context.Context, list *memberlist.Memberlist) {
	for {
		select {
		case <-c.reannounce:
			c.catch("an announcement broke", func() {
				if err := list.UpdateNode(announceTimeout); err != nil {
					c.log.Debug("announcement not sent yet", "err", err)
				}
			})
		case <-ctx.Done():
			return
		}
	}
}

// leave says goodbye. Our message must arrive before memberlist's own, which the others would take for a death.
func (c *Cluster) leave(list *memberlist.Memberlist) {
	goodbye := message{kind: kindLeave, from: c.config.Node}
	c.broadcasts.QueueBroadcast(newBroadcast(goodbye))
	for _, member := range list.Members() {
		if member.Name != c.name {
			if err := list.SendBestEffort(member, goodbye.encode()); err != nil {
				c.log.Debug("goodbye not sent", "to", member.Name, "err", err)
			}
		}
	}
	// Two rounds of gossip carry the message to the others.
	<-time.After(2 * gossipInterval)
	if err := list.Leave(leaveTimeout); err != nil {
		c.log.Debug("leave not confirmed", "err", err)
	}
}
