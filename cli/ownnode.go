package cli

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/holdfast-rtc/holdfast/internal/readiness"
	"github.com/holdfast-rtc/holdfast/node"
)

// ownNode is the signaling node that runs in this container, or on this machine with the same variables as this verb.
type ownNode struct {
	url  string
	keys node.KeyringConfig
}

var (
	errNoOwnNode     = errors.New("no signaling node is known")
	errSilentOwnNode = errors.New("no signaling node answers")
)

// ownNodeLimit is for a node of the same machine.
const ownNodeLimit = 2 * time.Second

// findOwnNode reads how the container's first process was started, if that is a signaling node of Holdfast; else HOLDFAST_LISTEN says where
// one listens. Without either it does not try the usual port: whoever listens there on a shared machine would get an operator's token.
func findOwnNode(ctx context.Context, commandLine string) (ownNode, error) {
	args := strings.Split(strings.TrimSuffix(commandLine, "\x00"), "\x00")[1:]
	if len(args) == 0 || args[0] != "signaling" {
		if os.Getenv("HOLDFAST_LISTEN") == "" {
			return ownNode{}, errNoOwnNode
		}
		args = []string{"signaling"}
	}
	var root commands
	parser, err := newParser(&root, streams{out: io.Discard, err: io.Discard}, kong.Exit(func(int) {}))
	if err == nil {
		_, err = parser.Parse(args)
	}
	if err != nil {
		return ownNode{}, fmt.Errorf("%w: %w", errNoOwnNode, err)
	}
	host, port, err := net.SplitHostPort(root.Signaling.Listen)
	if err != nil {
		return ownNode{}, fmt.Errorf("%w: %w", errNoOwnNode, err)
	}
	if ip := net.ParseIP(host); host == "" || ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	address := net.JoinHostPort(host, port)
	// The node may not be ready, and can be asked all the same.
	if sockets, _ := readiness.New(ownNodeLimit).Count(ctx, address, readiness.Path); sockets < 0 {
		return ownNode{}, fmt.Errorf("%w at %s", errSilentOwnNode, address)
	}
	found := ownNode{url: "http://" + address, keys: root.Signaling.KeyringConfig}
	if root.Signaling.TLSCert != "" || len(root.Signaling.ACMEHost) > 0 {
		found.url = "https://" + address
	}
	return found, nil
}

// firstProcess is the command line of process 1, which in a container is the node; "" where that cannot be read.
func firstProcess() string {
	content, err := os.ReadFile("/proc/1/cmdline")
	if err != nil {
		return ""
	}
	return string(content)
}

// loopbackClient asks a node of this machine: its certificate names no address of loopback.
func loopbackClient() *http.Client {
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // the line above
}
