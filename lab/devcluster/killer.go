package devcluster

import (
	"context"
	"net"
	"os"
	"syscall"
)

// For the page's button that kills media nodes; only if the page is served on loopback.
const (
	superviseEnv      = "HOLDFAST_DEV_CONTROL"
	superviseTokenEnv = "HOLDFAST_DEV_TOKEN" //nolint:gosec // the name of a variable
)

// Killer kills nodes of the cluster whose child this process is.
type Killer struct{ client *Client }

// NewKiller returns nil unless a supervisor gave this process the right.
func NewKiller() *Killer {
	address, token := os.Getenv(superviseEnv), os.Getenv(superviseTokenEnv)
	if address == "" || token == "" || !Supervised() {
		return nil
	}
	return &Killer{client: newClient(stateFile{Control: address, Token: token})}
}

// Kill sends SIGKILL to a node and waits for its end.
func (k *Killer) Kill(ctx context.Context, node string) error {
	return k.client.Kill(ctx, node, syscall.SIGKILL)
}

// An empty address will be loopback.
func loopbackPage(listen string) bool {
	if listen == "" {
		return true
	}
	host, _, err := net.SplitHostPort(listen)
	return err == nil && (host == "localhost" || net.ParseIP(host).IsLoopback())
}
