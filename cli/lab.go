//go:build !node

package cli

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/holdfast-rtc/holdfast/internal/invocation"
	"github.com/holdfast-rtc/holdfast/lab/chaos"
	"github.com/holdfast-rtc/holdfast/lab/devcluster"
	"github.com/holdfast-rtc/holdfast/lab/hosts"
	"github.com/holdfast-rtc/holdfast/signaling/access"
)

// labCommands are missing in a binary built with the tag node.
type labCommands struct {
	Dev      devCommand      `cmd:"" group:"try" help:"Run a whole cluster on this machine."`
	Demo     demoCommand     `cmd:"" group:"try" help:"Run dev with four drawn people in a room: join them, and kill their node."`
	Load     loadCommand     `cmd:"" group:"try" help:"Put synthetic people into rooms, and measure."`
	Chaos    chaosCommand    `cmd:"" group:"try" help:"Hurt a development cluster on purpose, and check every promise."`
	Sim      simCommand      `cmd:"" group:"try" help:"Play a scenario of up to 2,000 nodes on a virtual clock."`
	Top      topCommand      `cmd:"" group:"look" help:"Show the cluster live: nodes, rooms, the last failovers."`
	Store    storeCommand    `cmd:"" hidden:"" help:"Run the embedded store of a development cluster."`
	Sentinel sentinelCommand `cmd:"" hidden:"" help:"Become a Sentinel that watches the store of a development cluster."`
}

// labVars are what help texts of labCommands name.
func labVars() kong.Vars {
	names := chaos.Names()
	last := len(names) - 1
	return kong.Vars{"scenarios": strings.Join(names[:last], ", ") + " or " + names[last]}
}

// devCluster is a developmentCluster that a supervisor runs.
type devCluster struct{ *devcluster.Client }

// findDev returns this user's only development cluster, or that of the state file.
func findDev(ctx context.Context, state string) (developmentCluster, error) {
	dev, err := devcluster.Find(ctx, state)
	if err != nil {
		return nil, err
	}
	return devCluster{dev}, nil
}

// devAdvice is what a person can do who has no cluster.
func devAdvice() string { return ", or start a cluster with '" + invocation.Name() + " dev'" }

// noDev begins a sentence that says why no development cluster can be asked.
func noDev(err error) string {
	if errors.Is(err, devcluster.ErrNoCluster) {
		err = devcluster.ErrNoCluster
	}
	return err.Error() + ", and "
}

// severalDev reports whether a person has to choose.
func severalDev(err error) bool { return errors.Is(err, devcluster.ErrSeveral) }

func (c devCluster) page(ctx context.Context) (url string, err error) {
	status, err := c.Status(ctx)
	return status.Page, err
}

func (c devCluster) processes(ctx context.Context) []string {
	status, err := c.Status(ctx)
	if err != nil {
		return nil
	}
	var names []string
	for _, n := range status.Nodes {
		names = append(names, n.Name)
	}
	return names
}

func (c devCluster) apiKeys() string { return keysText(c.Access()) }

func keysText(of devcluster.Access) string { return of.Key + ":" + of.Secret }

func keysOf(of devcluster.Access) (*access.Keyring, error) { return access.ParseKeyring(keysText(of)) }

// spokenFor is the exit code of a command that ran elsewhere and has reported.
func spokenFor(err error) (code int, ok bool) {
	ended, ok := errors.AsType[*hosts.EndedError](err)
	if !ok {
		return 0, false
	}
	return max(ended.Code, exitFailed), true
}

func ownBinary() (string, error) {
	path, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find the holdfast binary: %w", err)
	}
	return path, nil
}

// seedOr chooses a short seed where none is given: people type it again.
func seedOr(seed uint64) uint64 {
	for seed == 0 {
		seed = uint64(rand.Uint32()) //nolint:gosec // a name, not a secret
	}
	return seed
}
