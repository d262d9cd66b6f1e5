package cli

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/readiness"
	"github.com/holdfast-rtc/holdfast/node"
)

// healthCommand is for containers without a shell.
type healthCommand struct {
	URL   string        `arg:"" help:"What to ask, for example http://127.0.0.1:7880/readyz of a signaling node or http://127.0.0.1:7984/readyz of a media node (--metrics-listen); tcp://HOST:PORT only connects."`
	Limit time.Duration `default:"2s" help:"How long to wait for the answer."`
}

func (c *healthCommand) Run(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, c.Limit)
	defer cancel()
	if address, ok := strings.CutPrefix(c.URL, "tcp://"); ok {
		return connects(ctx, address)
	}
	if _, err := url.Parse(c.URL); err != nil {
		return node.Faults(fmt.Errorf("%q is not a URL: %w", c.URL, err))
	}
	return readiness.New(c.Limit).AskURL(ctx, c.URL)
}

// connects says that something listens, as a media node with a wrong key does, too.
func connects(ctx context.Context, address string) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	return conn.Close()
}
