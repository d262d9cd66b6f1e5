package devcluster

import (
	"context"
	"net"
	"net/http"
	"os"
	"syscall"
)

// What signaling nodes are told so that a page can kill a media node: where the
// supervisor listens, and what a request must carry. They are told only when the page is
// served on loopback.
const (
	superviseEnv      = "HOLDFAST_DEV_CONTROL"
	superviseTokenEnv = "HOLDFAST_DEV_TOKEN" //nolint:gosec // the name of a variable
)

// Killer kills nodes of the cluster whose child this process is.
type Killer struct{ client *Client }

// NewKiller returns nil when this process is no child of a supervisor that lets it.
func NewKiller() *Killer {
	address, token := os.Getenv(superviseEnv), os.Getenv(superviseTokenEnv)
	if address == "" || token == "" || !Supervised() {
		return nil
	}
	return &Killer{client: &Client{
		state: stateFile{Control: address, Token: token}, http: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}},
	}}
}

// Kill sends SIGKILL to a node and returns when its process is gone.
func (k *Killer) Kill(ctx context.Context, node string) error {
	return k.client.Kill(ctx, node, syscall.SIGKILL)
}

// loopbackPage reports whether the page is for this machine only. An address that is
// not chosen yet becomes a loopback one.
func loopbackPage(listen string) bool {
	if listen == "" {
		return true
	}
	host, _, err := net.SplitHostPort(listen)
	return err == nil && (host == "localhost" || net.ParseIP(host).IsLoopback())
}
