package front

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// answerBytes bounds what is read of a backend's answer.
const answerBytes = 4 << 10

// backend is one signaling node.
type backend struct {
	address string
	checked bool        // watch runs, and alone says that the backend is well again
	down    atomic.Bool // it refused, did not answer in time, or said it is not ready
}

func newBackend(address string, checked bool) *backend {
	return &backend{address: address, checked: checked}
}

// ready reports what was last known; a backend is ready until it proves otherwise.
func (b *backend) ready() bool { return !b.down.Load() }

// dial connects, within limit. A backend that cannot be reached is passed over
// until a check succeeds, or, without checks, a dial. (The kernel of a frozen
// process accepts, so a dial alone proves little.)
func (b *backend) dial(ctx context.Context, limit time.Duration) (net.Conn, error) {
	dialer := net.Dialer{Timeout: limit}
	conn, err := dialer.DialContext(ctx, "tcp", b.address)
	if err != nil {
		b.down.Store(true)
		return nil, fmt.Errorf("dial backend %s: %w", b.address, err)
	}
	if !b.checked {
		b.down.Store(false)
	}
	return conn, nil
}

// watch asks the backend whether it is ready, until ctx ends. An answer that
// takes as long as the interval is no answer.
func (b *backend) watch(ctx context.Context, every time.Duration, path string, log *slog.Logger) {
	client := &http.Client{
		Timeout: every,
		// A connection of its own each time: a frozen process keeps an old one open.
		Transport: &http.Transport{DisableKeepAlives: true},
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		err := ask(ctx, client, "http://"+b.address+path)
		if ctx.Err() != nil {
			return
		}
		if was := b.down.Swap(err != nil); was != (err != nil) {
			log.Info("backend changed", "backend", b.address, "ready", err == nil, "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func ask(ctx context.Context, client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("ask %s: %w", url, err)
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, answerBytes))
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answered %s", url, response.Status)
	}
	return nil
}
