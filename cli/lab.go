//go:build !node

package cli

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"

	"github.com/holdfast-rtc/holdfast/lab/hosts"
)

// labCommands are missing in a binary built with the tag node.
type labCommands struct {
	Dev      devCommand      `cmd:"" help:"Run a whole cluster on this machine: media nodes, signaling nodes, a store and a front."`
	Load     loadCommand     `cmd:"" help:"Put synthetic people into rooms and measure joins, gaps, loss, bitrate and CPU."`
	Chaos    chaosCommand    `cmd:"" help:"Hurt a development cluster on purpose, check every invariant and measure the gaps."`
	Sim      simCommand      `cmd:"" help:"Play a scenario of up to 2,000 nodes on a virtual clock, and compare ways to place rooms."`
	Store    storeCommand    `cmd:"" hidden:"" help:"Run the embedded store of a development cluster."`
	Sentinel sentinelCommand `cmd:"" hidden:"" help:"Become a Sentinel that watches the store of a development cluster."`
}

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
